package core

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// signInProgressInterval is the interval of progress notifications while a call waits for a sign-in.
const signInProgressInterval = 5 * time.Second

// reportWaiting sends progress notifications to the caller of a request that waits for a sign-in,
// if it asked for progress, until stop is called: the first one at once. Clients that would give
// up after a time without an answer wait on. The values count up to 0, because each must be
// greater than the one before, and the server begins with 0 or more.
func reportWaiting(req *call.Request, server string) (stop func()) {
	var params struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if req.OnNotify == nil || json.Unmarshal(req.Params, &params) != nil || len(params.Meta.Token) == 0 {
		return func() {}
	}
	message := jsonrpc.AppendString(nil, "Waiting for the sign-in to server "+server)
	ended := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(signInProgressInterval)
		defer tick.Stop()
		for left := int(signInTimeout / signInProgressInterval); left > 0; left-- {
			req.OnNotify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":-%d,"message":%s}`, params.Meta.Token, left, message))
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		work.Wait()
	}
}
