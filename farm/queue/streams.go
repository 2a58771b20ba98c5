package queue

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	nodeLife = 30 * time.Second // a node is gone that long after its last heartbeat
	leadLife = 10 * time.Second
	logAge   = 7 * 24 * time.Hour
	logBytes = 2 << 30
)

// makeStreams makes or updates every stream. Nothing is ever lost but logs, small pictures, node heartbeats and the reconciler's key.
func (q *Queue) makeStreams(ctx context.Context, replicas int) error {
	streams := []jetstream.StreamConfig{
		{
			Name: jobStream, Subjects: []string{"jobs.>"}, Retention: jetstream.WorkQueuePolicy, Replicas: replicas,
			// At most one message a task: the server refuses a second one.
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgSize: 1 << 10,
		},
		{Name: logStream, Subjects: []string{"log.>"}, Replicas: replicas, MaxAge: logAge, MaxBytes: logBytes, Discard: jetstream.DiscardOld, AllowDirect: true},
		bucketStream("job", replicas, 0),
		bucketStream("task", replicas, 0),
		bucketStream("ctl", replicas, 0),
		bucketStream("node", replicas, nodeLife),
		bucketStream("lead", replicas, leadLife),
		previewStream(replicas),
	}
	for _, config := range streams {
		err := q.retry(ctx, "make stream "+config.Name, func(ctx context.Context) error {
			_, err := q.js.CreateOrUpdateStream(ctx, config)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bucketStream is a KV bucket that keeps the newest value of each key and announces the sequence number of every write. A message may not roll up the stream:
// whoever may write one key could wipe all others by it.
func bucketStream(name string, replicas int, life time.Duration) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, Replicas: replicas, MaxAge: life,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DenyDelete: true, AllowDirect: true,
		RePublish: &jetstream.RePublish{Source: "$KV." + name + ".>", Destination: "ev." + name + ".>", HeadersOnly: true},
	}
}

// consumerOf names the durable consumer of a priority and pool.
func consumerOf(p Priority, pool string) string { return string(p) + "-" + tokenOf(pool) }

// makeConsumer makes the consumer that hands out the tasks of a priority and pool. Redelivery has no limit: attempts are counted in entries.
func (q *Queue) makeConsumer(ctx context.Context, p Priority, pool string) error {
	return q.retry(ctx, "make consumer", func(ctx context.Context) error {
		_, err := q.js.CreateOrUpdateConsumer(ctx, jobStream, jetstream.ConsumerConfig{
			Durable: consumerOf(p, pool), FilterSubject: "jobs." + string(p) + "." + tokenOf(pool) + ".>",
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Duration(q.farm.Lease), MaxDeliver: -1, MaxAckPending: -1,
		})
		return err
	})
}

// tokenOf spells a name as one token of a subject: what is not a letter, a digit, "-" or "_" becomes =XX.
func tokenOf(name string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'=', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
