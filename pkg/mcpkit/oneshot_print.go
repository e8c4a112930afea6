package mcpkit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// printInvalid answers input that is not a JSON object.
func (o *oneShot) printInvalidInput(err error) error {
	return o.printResult(false, errorResult(toolerr.New(toolerr.InvalidInput,
		"the input is not a JSON object (%v); send the arguments, such as {\"path\":\".\"}, or {\"name\":\"%s\",\"params\":{…}}",
		err, o.tools.Names()[0])))
}

// print writes one answer, as text or in the form of JSON that the call used.
func (o *oneShot) printResult(named bool, res *CallResult) error {
	if o.text {
		return o.printText(res)
	}
	var answer any
	var line json.RawMessage
	var err error
	switch {
	case res.IsError && named:
		answer = struct {
			Error any `json:"error"`
		}{oneShotError{Message: res.Text, Code: res.Code}}
	case res.IsError:
		answer = oneShotFlatError{Error: res.Text, Code: res.Code}
	case o.structured && res.Rows != nil:
		answer = struct {
			Results any `json:"results"`
		}{rowsToEncode(res.Rows)}
	case res.Notes == "" && len(res.Images) == 0: // most answers, and the long ones
		line = append(jsonrpc.AppendString([]byte(`{"result":`), res.Text), '}')
	default:
		answer = oneShotResult{Result: res.Text, Notes: res.Notes, Images: encodeImages(res.Images)}
	}
	if line == nil {
		if line, err = jsonrpc.Marshal(answer); err != nil {
			return fmt.Errorf("encoding the answer: %w", err)
		}
	}
	if _, err := o.stdout.Write(append(line, '\n')); err != nil {
		return err
	}
	if res.IsError {
		return errCallFailed
	}
	return nil
}

// printText writes a result's text to the output; errors and notes about images
// go to standard error.
func (o *oneShot) printText(res *CallResult) error {
	if res.IsError {
		if _, err := fmt.Fprintf(o.stderr, "%s: %s\n", o.program, strings.TrimSuffix(res.Text, "\n")); err != nil {
			return err
		}
		return errCallFailed
	}
	if _, err := io.WriteString(o.stdout, strings.TrimSuffix(res.Text, "\n")+"\n"); err != nil {
		return err
	}
	if n := len(res.Images); n > 0 {
		fmt.Fprintf(o.stderr, "%s: %d images are not shown; without --text they are in the JSON\n", o.program, n)
	}
	if res.Notes != "" {
		fmt.Fprintln(o.stderr, res.Notes)
	}
	if res.ExitStatus != 0 {
		return exitStatusError(res.ExitStatus)
	}
	return nil
}

type oneShotError struct {
	Message string       `json:"message"`
	Code    toolerr.Code `json:"code"`
}

type oneShotFlatError struct {
	Error string       `json:"error"`
	Code  toolerr.Code `json:"code"`
}

type oneShotResult struct {
	Result string         `json:"result"`
	Notes  string         `json:"notes,omitempty"` // where the result is data
	Images []oneShotImage `json:"images,omitempty"`
}

type oneShotImage struct {
	MIME string `json:"mimeType"`
	Data string `json:"data"` // base64
}

func encodeImages(list []Image) []oneShotImage {
	var out []oneShotImage
	for _, img := range list {
		out = append(out, oneShotImage{MIME: img.MIME, Data: base64.StdEncoding.EncodeToString(img.Data)})
	}
	return out
}

// rows returns the rows to encode: an empty list instead of a nil one.
func rowsToEncode(list any) any {
	if makeRows, ok := list.(func() any); ok {
		list = makeRows()
	}
	if v := reflect.ValueOf(list); v.Kind() == reflect.Slice && v.IsNil() {
		return []struct{}{}
	}
	return list
}
