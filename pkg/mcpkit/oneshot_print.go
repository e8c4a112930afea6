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

// printInvalidInput prints the answer, an INVALID_INPUT error, to input that is not a
// JSON object; err says why. It returns errCallFailed, or the error of writing.
func (o *oneShot) printInvalidInput(err error) error {
	return o.printResult(false, errorResult(toolerr.New(toolerr.InvalidInput,
		"the input is not a JSON object (%v); send the arguments, such as {\"path\":\".\"}, or {\"name\":\"%s\",\"params\":{…}}",
		err, o.tools.Names()[0])))
}

// printResult prints one answer: as text if o.text is set, otherwise in the form of JSON
// that belongs to the call's form (see parseCall). It returns errCallFailed for a result
// with an error, and the error of writing. named means the form {"name": …, "params": …}.
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

// printText prints a result's text to stdout. Errors, notes and the number of images go
// to stderr. It returns errCallFailed for a result with an error, and an exitStatusError
// for an exit status other than 0.
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

// oneShotError is the error in the answer to a named call.
type oneShotError struct {
	Message string       `json:"message"`
	Code    toolerr.Code `json:"code"`
}

// oneShotFlatError is the failed answer to a call without a name.
type oneShotFlatError struct {
	Error string       `json:"error"`
	Code  toolerr.Code `json:"code"`
}

// oneShotResult is the answer to a successful call.
type oneShotResult struct {
	Result string         `json:"result"`
	Notes  string         `json:"notes,omitempty"` // only if the result is data; otherwise Result has them
	Images []oneShotImage `json:"images,omitempty"`
}

// oneShotImage is an image in an answer, with its data in base64.
type oneShotImage struct {
	MIME string `json:"mimeType"`
	Data string `json:"data"` // base64
}

// encodeImages returns the images of list for JSON, with their data in base64;
// nil without images.
func encodeImages(list []Image) []oneShotImage {
	var out []oneShotImage
	for _, img := range list {
		out = append(out, oneShotImage{MIME: img.MIME, Data: base64.StdEncoding.EncodeToString(img.Data)})
	}
	return out
}

// rowsToEncode returns the rows of Result.Rows for JSON: it calls a function
// that makes them, and returns an empty list instead of a nil slice.
func rowsToEncode(rows any) any {
	if makeRows, ok := rows.(func() any); ok {
		rows = makeRows()
	}
	if v := reflect.ValueOf(rows); v.Kind() == reflect.Slice && v.IsNil() {
		return []struct{}{}
	}
	return rows
}
