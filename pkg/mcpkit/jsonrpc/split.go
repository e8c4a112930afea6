package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// invalidRequest returns an Error with CodeInvalidRequest, the id to answer
// with, and the formatted text.
func invalidRequest(id json.RawMessage, format string, args ...any) *Error {
	return &Error{Code: CodeInvalidRequest, Message: "invalid request: " + fmt.Sprintf(format, args...), ID: id}
}

// Split splits one line into the members of a message. A non-nil error is an
// *Error: with CodeParse if the line is not JSON, with CodeInvalidRequest if it
// is JSON but not one message.
func Split(line []byte) (Message, error) {
	var buf [8]Member
	var names NameSet
	members, err := splitMembers(line, buf[:0], &names)
	if err != nil {
		return Message{}, err
	}
	m, fault := assignMembers(members)
	if fault != nil {
		return Message{}, fault
	}
	m.Names = names
	if fault := m.classify(); fault != nil {
		return Message{}, fault
	}
	return m, nil
}

// splitMembers returns the members of a whole line, appended to buf. names gets
// the member names of the member result. A non-nil error is an *Error.
func splitMembers(line []byte, buf []Member, names *NameSet) ([]Member, error) {
	start := skipSpace(line, 0)
	if start < len(line) && line[start] != '{' {
		if err := Valid(line); err != nil {
			return nil, parseError(err)
		}
		if line[start] == '[' {
			return nil, invalidRequest(nil, "batches are not supported: send one message per line")
		}
		return nil, invalidRequest(nil, "a message must be a JSON object")
	}
	members, err := appendMembers(buf, line, names)
	switch {
	case err == nil:
		return members, nil
	case isDuplicate(err):
		return nil, invalidRequest(uniqueID(members), "%v", err)
	default:
		return nil, parseError(err)
	}
}

// parseError returns an Error with CodeParse and the text of err.
func parseError(err error) *Error {
	return &Error{Code: CodeParse, Message: "parse error: " + err.Error()}
}

// uniqueID returns the id among members if there is exactly one and it is
// valid; otherwise nil.
func uniqueID(members []Member) json.RawMessage {
	var id json.RawMessage
	for _, m := range members {
		if m.Name == "id" {
			if id != nil {
				return nil
			}
			id = m.Value
		}
	}
	if _, err := Key(id); err != nil {
		return nil
	}
	return id
}

// assignMembers returns the message with these members, without its kind. It returns an
// error for a misspelled member, for another version than 2.0, and for a method that is
// not a string or empty.
func assignMembers(members []Member) (Message, *Error) {
	var m Message
	var version, method json.RawMessage
	for _, member := range members {
		switch member.Name {
		case "jsonrpc":
			version = member.Value
		case "id":
			m.ID = member.Value
		case "method":
			method = member.Value
		case "params":
			m.Params = member.Value
		case "result":
			m.Result = member.Value
		case "error":
			m.Error = member.Value
		default:
			if name := misspelledMember(member.Name); name != "" {
				return m, invalidRequest(uniqueID(members), "member %q must be spelled %q", member.Name, name)
			}
		}
	}
	id := uniqueID(members)
	if !bytes.Equal(version, []byte(`"2.0"`)) {
		return m, invalidRequest(id, `member "jsonrpc" must be "2.0"`)
	}
	if method != nil {
		if method[0] == '"' {
			if name, err := decodeString(method, bytes.IndexByte(method, '\\') >= 0); err == nil {
				m.Method = name
			}
		}
		if m.Method == "" {
			return m, invalidRequest(id, `member "method" must be a non-empty string`)
		}
	}
	return m, nil
}

// misspelledMember returns the member of messages that name equals except for
// case, or "".
func misspelledMember(name string) string {
	if len(name) > 16 {
		return ""
	}
	for _, known := range [...]string{"jsonrpc", "id", "method", "params", "result", "error"} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	return ""
}

// classify sets m.Kind by the members that are set, or returns an Error that
// says why the members do not form a message. It returns nil for a valid
// message.
func (m *Message) classify() *Error {
	if m.ID != nil && !isNull(m.ID) {
		if _, err := Key(m.ID); err != nil {
			return invalidRequest(nil, "%v", err)
		}
	}
	switch {
	case m.Method != "" && (m.Result != nil || m.Error != nil):
		return invalidRequest(m.ID, "a message has a method or a result, not both")
	case m.Method != "" && m.ID == nil:
		m.Kind = Notification
	case m.Method != "":
		if isNull(m.ID) {
			return invalidRequest(nil, "a request's id is a string or an integer, not null")
		}
		m.Kind = Request
	case (m.Result != nil) == (m.Error != nil):
		return invalidRequest(m.ID, `it has none of "method", "result" and "error"`)
	case m.ID == nil:
		return invalidRequest(nil, "a response carries the id of its request")
	default:
		m.Kind = Response
	}
	if m.Params != nil && m.Params[0] != '{' && m.Params[0] != '[' && !isNull(m.Params) {
		return invalidRequest(m.ID, `member "params" must be an object`)
	}
	return nil
}

// isNull reports whether raw, a valid JSON value, is null.
func isNull(raw json.RawMessage) bool { return len(raw) == 4 && raw[0] == 'n' }
