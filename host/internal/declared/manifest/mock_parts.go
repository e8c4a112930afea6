package manifest

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// readMockParts returns the field mock_parts, texts, images and audio from files or
// inline, as content items of an MCP result. It leaves out an item with a problem.
func (r *reader) readMockParts(path string, v *dialect.Tree) (content []json.RawMessage) {
	if !v.IsList() {
		r.addProblem(v, path, "want a list, not %s", v.KindName())
		return nil
	}
	for i, item := range v.Items {
		at := path + "[" + strconv.Itoa(i) + "]"
		var kind, text, file, data, mimeType string
		r.readFields(at, item, []field{
			r.textField("type", &kind), r.textField("text", &text),
			{"media", nil, func(path string, v *dialect.Tree) {
				r.readFields(path, v, []field{
					r.textField("file_path", &file, "file"), r.textField("mime_type", &mimeType), r.textField("data", &data), {"detail", nil, nil}, {"size_kb", nil, nil}, {"caption", nil, nil},
				})
			}},
		})
		switch kind {
		case "text":
			content = append(content, append(jsonrpc.AppendString([]byte(`{"type":"text","text":`), text), '}'))
		case "image", "audio":
			if file != "" {
				raw, ok := r.readOtherFile(at+".media.file_path", item, file)
				if !ok {
					continue
				}
				data = base64.StdEncoding.EncodeToString(raw)
				if mimeType == "" {
					mimeType = mime.TypeByExtension(strings.ToLower(filepath.Ext(file)))
				}
			}
			if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" || mimeType == "" {
				r.addProblem(item, at+".media", "want a file_path, or data in base64, and a mime_type")
				continue
			}
			one := jsonrpc.AppendString([]byte(`{"type":"`+kind+`","mimeType":`), mimeType)
			content = append(content, append(jsonrpc.AppendString(append(one, `,"data":`...), data), '}'))
		default:
			r.addProblem(item, at+".type", "is %s; want text, image or audio", dialect.ShownName(kind))
		}
	}
	return content
}
