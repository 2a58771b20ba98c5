package export

import (
	"fmt"
	"time"

	"vksplat/farm/spec"
)

// runText is bash's function run, which a script calls once or more: it runs a command and leaves its exit code in
// code. SIGTERM to the script goes on to the command, which saves its work and ends with 75; stopped says that it came.
const runText = `# run COMMAND... runs a command, passes SIGTERM on to it, and leaves its exit code in code.
stopped= asked= child= code=
trap 'stopped=1 asked=1; [ -n "$child" ] && kill -TERM "$child" 2>/dev/null' TERM
run() {
	local again
	"$@" &
	child=$!
	[ -n "$stopped" ] && kill -TERM "$child"
	wait "$child"
	code=$?
	while [ -n "$asked" ]; do # the signal interrupted wait
		asked=
		wait "$child"
		again=$?
		[ "$again" -ne 127 ] && code=$again
	done
}`

// tryText is a script for schedulers that cannot tell exit codes apart. It repeats a task itself, so that to the
// scheduler any failure is final. tryArgs are its first arguments.
const tryText = `# Usage: bash THIS ATTEMPTS PAUSE LONGEST COMMAND...
attempts=$1 pause=$2 longest=$3
shift 3
` + runText + `

for ((attempt = 1; ; attempt++)); do
	run "$@"
	# 75: another attempt may succeed; 128 and above: it was killed.
	if { [ "$code" -ne 75 ] && [ "$code" -lt 128 ]; } || [ -n "$stopped" ] || [ "$attempt" -ge "$attempts" ]; then
		exit "$code"
	fi
	echo "attempt $attempt of $attempts ended with $code; the next begins in $pause s" >&2
	sleep "$pause" &
	wait $!
	[ -n "$stopped" ] && exit "$code"
	pause=$((2 * pause < longest ? 2 * pause : longest))
done
`

// tryArgs returns what the script takes in front of the command: attempts, and the pauses between them in seconds.
func tryArgs(r spec.Retry) []string {
	seconds := func(d time.Duration) string { return fmt.Sprint(int((d + time.Second - 1) / time.Second)) }
	return []string{fmt.Sprint(r.MaxAttempts), seconds(min(r.Backoff, r.BackoffMax)), seconds(r.BackoffMax)}
}

// allAttempts is how long a task may take with all its attempts and the pauses between them, in minutes.
func allAttempts(timeout time.Duration, r spec.Retry) int {
	return r.MaxAttempts*minutes(timeout) + (r.MaxAttempts-1)*int((r.BackoffMax+time.Minute-1)/time.Minute)
}
