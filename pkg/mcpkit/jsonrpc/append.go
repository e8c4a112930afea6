package jsonrpc

import (
	"encoding/json"
)

// AppendRequest appends a request, without a final newline. Nil params are
// omitted.
func AppendRequest(dst []byte, id json.RawMessage, method string, params json.RawMessage) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return appendMethod(append(dst, ','), method, params)
}

// AppendNotification appends a notification, without a final newline. Nil
// params are omitted.
func AppendNotification(dst []byte, method string, params json.RawMessage) []byte {
	return appendMethod(append(dst, `{"jsonrpc":"2.0",`...), method, params)
}

// appendMethod appends the rest of a request or notification, from its method
// on.
func appendMethod(dst []byte, method string, params json.RawMessage) []byte {
	dst = append(dst, `"method":`...)
	dst = AppendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendResult appends a response with a result, without a final newline.
func AppendResult(dst []byte, id, result json.RawMessage) []byte {
	return append(append(AppendResultHead(dst, id), result...), '}')
}

// AppendResultHead appends the part of a response before its result. The rest
// is the result and a closing brace.
func AppendResultHead(dst []byte, id json.RawMessage) []byte {
	return append(appendID(dst, id), `,"result":`...)
}

// AppendErrorObject appends a response with an error object, unchanged. A nil
// id is sent as null.
func AppendErrorObject(dst []byte, id, object json.RawMessage) []byte {
	dst = appendID(dst, id)
	dst = append(dst, `,"error":`...)
	dst = append(dst, object...)
	return append(dst, '}')
}

// AppendError appends a response with an error. A nil id is sent as null.
func AppendError(dst []byte, id json.RawMessage, code int, message string) []byte {
	object := append([]byte(nil), `{"code":`...)
	object = appendInt(object, code)
	object = append(object, `,"message":`...)
	object = AppendString(object, message)
	return AppendErrorObject(dst, id, append(object, '}'))
}

// appendID appends the beginning of a response up to its id, which is null for
// a nil id.
func appendID(dst []byte, id json.RawMessage) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}

// appendInt appends n in decimal.
func appendInt(dst []byte, n int) []byte {
	raw, err := json.Marshal(n)
	if err != nil { // an int always encodes
		return append(dst, '0')
	}
	return append(dst, raw...)
}
