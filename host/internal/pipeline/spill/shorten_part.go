package spill

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// shortenItem returns a content item that is larger than limit in a shorter form: a text
// as its beginning and end with the file that has the whole, other items as a text that
// names the file.
func (s *spiller) shortenItem(raw json.RawMessage, limit int) json.RawMessage {
	members, err := jsonrpc.Members(raw)
	if err != nil {
		return textItem(s.writeAndDescribe(raw, "json", "a part"))
	}
	switch stringMember(members, "type") {
	case "text":
		for _, m := range members {
			if m.Name != "text" {
				continue
			}
			var whole string
			if json.Unmarshal(m.Value, &whole) != nil || len(whole) <= s.head+s.tail {
				break // another member is large
			}
			cut := s.shortenText(whole)
			short := slices.Concat(raw[:m.Start], jsonrpc.AppendString(nil, cut), raw[m.End:])
			if len(short) <= limit {
				return short
			}
			return textItem(cut)
		}
	case "image", "audio":
		return textItem(s.writeDecoded(members, "data"))
	case "resource":
		for _, m := range members {
			if m.Name != "resource" {
				continue
			}
			inner, err := jsonrpc.Members(m.Value)
			if err != nil {
				break
			}
			if stringMember(inner, "blob") != "" {
				return textItem(s.writeDecoded(inner, "blob"))
			}
			if whole := stringMember(inner, "text"); whole != "" {
				return textItem("resource " + headOf(stringMember(inner, "uri"), 1000) + ":\n" + s.shortenText(whole))
			}
		}
	}
	return textItem(s.writeAndDescribe(raw, "json", "a part of type "+headOf(stringMember(members, "type"), 100)))
}

// writeDecoded writes the decoded base64 value of a member to a file, and returns a text
// about it.
func (s *spiller) writeDecoded(members []jsonrpc.Member, name string) string {
	kind := headOf(stringMember(members, "mimeType"), 100)
	if kind == "" {
		kind = "data"
	}
	encoded := stringMember(members, name)
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return s.writeAndDescribe([]byte(encoded), "base64", kind+" that is not base64")
	}
	return s.writeAndDescribe(data, fileExtension(kind), kind)
}

// fileExtension returns the usual file name extension of a media type.
func fileExtension(kind string) string {
	_, sub, _ := strings.Cut(kind, "/")
	sub, _, _ = strings.Cut(sub, ";")
	switch sub {
	case "png", "gif", "webp", "bmp", "wav", "ogg", "pdf", "json", "xml", "csv", "html", "zip", "gzip":
		return sub
	case "jpeg", "jpg":
		return "jpg"
	case "svg+xml":
		return "svg"
	case "mpeg":
		return "mp3"
	case "plain", "markdown":
		return "txt"
	}
	return "bin"
}

// stringMember returns a string member, "" if it does not exist.
func stringMember(members []jsonrpc.Member, name string) string {
	var s string
	for _, m := range members {
		if m.Name == name && json.Unmarshal(m.Value, &s) == nil {
			return s
		}
	}
	return ""
}

// headOf returns at most n bytes of the beginning of a text, whole lines if
// they are most of it.
func headOf(t string, n int) string {
	head := textfmt.Head(t, n)
	if i := strings.LastIndexByte(head, '\n'); len(head) < len(t) && i > len(head)*3/4 {
		return head[:i+1]
	}
	return head
}

// tailOf returns at most n bytes of the end of a text, whole lines if they are
// most of it.
func tailOf(t string, n int) string {
	tail := textfmt.Tail(t, n)
	if i := strings.IndexByte(tail, '\n'); len(tail) < len(t) && i >= 0 && i < n/4 {
		return tail[i+1:]
	}
	return tail
}
