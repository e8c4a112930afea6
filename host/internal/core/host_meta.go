package core

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// hostMetaPrefix is the prefix of the members of _meta in which only a host may describe the
// state of a call, for example that it waits for an approval.
const hostMetaPrefix = "toolroom/"

// withoutHostMeta returns a server's result without the members that only a host may set: a
// server could pretend that its call waits for a person's decision about another call. It
// returns RESULT_INVALID for a result with ambiguous members.
func withoutHostMeta(res *call.Result) (*call.Result, error) {
	if !res.Names.MayHaveHostMeta() {
		return res, nil
	}
	raw, err := filterMembers(res.Raw, func(m jsonrpc.Member) ([]byte, bool) {
		if !strings.EqualFold(m.Name, "_meta") {
			return m.Value, true
		}
		meta, err := filterMembers(m.Value, func(m jsonrpc.Member) ([]byte, bool) { return m.Value, !isReserved(m) })
		return meta, err == nil // else readers would not agree on what it says
	})
	if err != nil {
		return nil, toolerr.New(toolerr.ResultInvalid, "the result is ambiguous: %w", err)
	}
	if len(raw) == len(res.Raw) {
		return res, nil
	}
	return &call.Result{Raw: raw, Names: res.Names}, nil
}

// isReserved reports whether only a host may set the member m of _meta. A tool may set its
// own details and the known code of its error.
func isReserved(m jsonrpc.Member) bool {
	if len(m.Name) < len(hostMetaPrefix) || !strings.EqualFold(m.Name[:len(hostMetaPrefix)], hostMetaPrefix) {
		return false
	}
	switch m.Name {
	case call.MetaResult:
		return false
	case call.MetaCode:
		_, known := call.KnownCode(m.Value)
		return !known
	}
	return true
}

// filterMembers returns a JSON object with the members for which keep returns true, with
// the values that keep returns. It returns object itself if nothing changes, and an error
// for malformed JSON.
func filterMembers(object []byte, keep func(jsonrpc.Member) (value []byte, ok bool)) ([]byte, error) {
	members, err := jsonrpc.Members(object)
	if err != nil {
		return nil, err
	}
	out, same := []byte{'{'}, true
	for _, m := range members {
		value, ok := keep(m)
		if same = same && ok && len(value) == len(m.Value); !ok {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonrpc.AppendString(out, m.Name), ':'), value...)
	}
	if same {
		return object, nil
	}
	return append(out, '}'), nil
}
