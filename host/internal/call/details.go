package call

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The _meta members of results in which tools made with toolroom's kit report data for
// programs; models read the content.
const (
	MetaResult = "toolroom/result" // an object: counts, etag, exit code and the like
	MetaCode   = "toolroom/code"   // the stable code of an error
)

// Details returns the object _meta["toolroom/result"] of the result; nil if
// it has none.
func (r *Result) Details() json.RawMessage {
	return r.meta(MetaResult)
}

// Code returns the error code in _meta["toolroom/code"] of the result, "" if it is
// missing or not in toolerr.Codes: a server could send any number of codes.
func (r *Result) Code() toolerr.Code {
	code, _ := KnownCode(r.meta(MetaCode))
	return code
}

// KnownCode returns the code that a JSON text contains, and false if it is not one of
// toolerr.Codes.
func KnownCode(raw json.RawMessage) (toolerr.Code, bool) {
	var code toolerr.Code
	if len(raw) == 0 || json.Unmarshal(raw, &code) != nil || !slices.Contains(toolerr.Codes(), code) {
		return "", false
	}
	return code, true
}

// meta returns the member of _meta with that name, or nil.
func (r *Result) meta(name string) json.RawMessage {
	if !r.Names.MayHave("_meta") || !bytes.Contains(r.Raw, []byte(name)) {
		return nil
	}
	meta, ok := member(r.Raw, "_meta")
	if !ok {
		return nil
	}
	value, _ := member(meta, name)
	return value
}

// member returns a member of a JSON object, and false if the object lacks it or is no
// object.
func member(object json.RawMessage, name string) (json.RawMessage, bool) {
	members, err := jsonrpc.Members(object)
	if err != nil {
		return nil, false
	}
	i := slices.IndexFunc(members, func(m jsonrpc.Member) bool { return m.Name == name })
	if i < 0 {
		return nil, false
	}
	return members[i].Value, true
}
