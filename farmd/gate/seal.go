package gate

import (
	"crypto/hmac"
	"crypto/sha256"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protowire"

	"vksplat/farm/pass"
)

// Temporal's task tokens are protobuf messages that anybody can make who knows the ids in them. A seal at their end,
// as a field that Temporal does not know and passes over, says to which pass the server gave the task.
const sealField = 1000

// Seal marks a task in an answer as given to who.
func (g *Gate) Seal(who pass.Who, answer any) {
	if task, is := answer.(*workflowservice.PollActivityTaskQueueResponse); is && len(task.GetTaskToken()) > 0 {
		task.TaskToken = append(task.TaskToken, g.sealOf(task.TaskToken, who)...)
	}
}

// sealOf is the seal of a token, as a protobuf field.
func (g *Gate) sealOf(token []byte, who pass.Who) []byte {
	mac := hmac.New(sha256.New, g.seal)
	mac.Write([]byte(who.ID)) // of fixed length: nothing can move from here to the token
	mac.Write(token)
	return protowire.AppendBytes(protowire.AppendTag(nil, sealField, protowire.BytesType), mac.Sum(nil))
}

// sealed says whether a token ends with the seal of who.
func (g *Gate) sealed(token []byte, who pass.Who) bool {
	size := len(g.sealOf(nil, who))
	if len(token) <= size {
		return false
	}
	at := len(token) - size
	return hmac.Equal(token[at:], g.sealOf(token[:at], who))
}
