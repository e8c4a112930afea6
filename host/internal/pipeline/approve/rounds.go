package approve

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// asksForInput reports whether a result asks the client for input (input_required, version
// 2026-07-28), and returns its requestState; nil: it has none.
func asksForInput(res *call.Result) (state json.RawMessage, asks bool) {
	if !res.Names.MayHave("resultType") || !bytes.Contains(res.Raw, []byte(`"input_required"`)) {
		return nil, false
	}
	members, err := jsonrpc.Members(res.Raw)
	if err != nil {
		return nil, false
	}
	for _, m := range members {
		switch m.Name {
		case "resultType":
			asks = string(m.Value) == `"input_required"`
		case "requestState":
			state = m.Value
		}
	}
	return state, asks
}

// roundOf returns the digest of a request's state if the request is the next round of an
// earlier call; "": it is a new call. It equals the roundWith of the result that asked for
// input.
func roundOf(req *call.Request) string {
	if !req.Caller.Modern || len(req.Params) == 0 {
		return ""
	}
	members, err := jsonrpc.Members(req.Params)
	if err != nil {
		return ""
	}
	var state, answers json.RawMessage
	for _, m := range members {
		switch m.Name {
		case "requestState":
			state = m.Value
		case "inputResponses":
			answers = m.Value
		}
	}
	if isNull(state) && isNull(answers) {
		return ""
	}
	return roundWith(state, req.Caller)
}

// roundWith returns the digest of the state that identifies the next round of a call.
// Without a state, the digest identifies the client.
func roundWith(state json.RawMessage, c call.Caller) string {
	text := "state " + string(state)
	if isNull(state) {
		text = "client " + c.ID
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// isNull reports whether a JSON value is missing or null.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// onlyShownMembers returns the request with args and with only those params that the person
// saw or that have no effect. It removes members that nobody saw (task, members of _meta
// that only the server knows). With nextRound it keeps the state and the answers to the
// server's question. It returns an error for malformed params.
func onlyShownMembers(req *call.Request, args json.RawMessage, nextRound bool) (*call.Request, error) {
	params := json.RawMessage(`{}`)
	if len(req.Params) > 0 {
		members, err := jsonrpc.Members(req.Params)
		if err != nil {
			return nil, err
		}
		params = selectMembers(members, func(name string) bool {
			switch name {
			case "name", "_meta":
				return true
			case "requestState", "inputResponses":
				return nextRound
			}
			return false
		})
	}
	shown := *req
	shown.Params = params
	return shown.WithArguments(args)
}

// selectMembers returns an object of the members for which wanted returns true; of _meta,
// only the harmless members (isHarmlessMeta).
func selectMembers(members []jsonrpc.Member, wanted func(name string) bool) json.RawMessage {
	out := []byte{'{'}
	for _, m := range members {
		if !wanted(m.Name) {
			continue
		}
		value := m.Value
		if m.Name == "_meta" {
			meta, err := jsonrpc.Members(value)
			if err != nil {
				continue
			}
			value = selectMembers(meta, isHarmlessMeta)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonrpc.AppendString(out, m.Name), ':'), value...)
	}
	return append(out, '}')
}

// isHarmlessMeta reports whether a member of _meta concerns only how a call is made and
// followed, not its effect.
func isHarmlessMeta(name string) bool {
	switch name {
	case "progressToken", "traceparent", "tracestate", "toolroom/cache",
		"io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientInfo",
		"io.modelcontextprotocol/clientCapabilities", "io.modelcontextprotocol/logLevel":
		return true
	}
	return false
}
