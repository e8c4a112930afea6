package mcpkittest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// runOneShot runs the server once more, with section in.oneshot as its whole input. It
// fails the test if the answers or the exit status differ from section out.oneshot.
func (s *script) runOneShot(t *testing.T, bin string) {
	t.Helper()
	expected, err := parseExpectations(s.sections["out.oneshot"], false)
	if err != nil {
		t.Fatalf("section out.oneshot: %v", err)
	}
	args := s.sectionWords("args")
	if _, own := s.sections["args.oneshot"]; own {
		args = s.sectionWords("args.oneshot")
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.root, s.environment(), 5*time.Second
	cmd.Stdin = strings.NewReader(s.expandVars.Replace(s.sections["in.oneshot"]))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(MaxWait, func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Logf("killing: %v", err)
		}
	})
	defer timer.Stop()
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	answers, err := oneShotAnswers(&stdout)
	if err != nil {
		t.Fatalf("standard output: %v; standard error:\n%s", err, stderr.String())
	}
	s.checkOneShot(t, expected, answers, cmd.ProcessState.ExitCode(), stderr.String())
}

// checkOneShot compares the answers and the exit status of a one-shot run with section
// out.oneshot. With -update it rewrites the section instead of failing the test, except
// for a missing answer or another exit status.
func (s *script) checkOneShot(t *testing.T, expected []*expectation, answers []actualAnswer, exit int, stderr string) {
	t.Helper()
	status, fixed, failed := 0, "", false
	var written []*expectation
	for _, b := range expected {
		if b.kind == "exit" {
			fixed = b.detail
			continue
		}
		written = append(written, b)
	}
	for i, got := range answers {
		if got.kind == "error" {
			status = 1
		}
		if i == len(written) {
			b := &expectation{}
			b.setExpected(got, s.restoreVars)
			written = append(written, b)
			failed = true
			if !*update {
				t.Errorf("an answer that section out.oneshot does not list:\n%s", b)
			}
			continue
		}
		if fault := written[i].mismatch(got, s.expandVars, s.restoreVars); fault != "" {
			failed = true
			if !*update {
				t.Errorf("answer %d, %s: %s", i+1, written[i].firstLine(), fault)
			}
			written[i].setExpected(got, s.restoreVars)
		}
	}
	if len(answers) < len(written) {
		t.Errorf("%d answers, want %d; standard error:\n%s", len(answers), len(written), stderr)
	}
	want := strconv.Itoa(status)
	if fixed != "" {
		want = fixed
		written = append(written, &expectation{kind: "exit", detail: fixed})
	}
	if got := strconv.Itoa(exit); got != want {
		t.Errorf("exit status %s, want %s; standard error:\n%s", got, want, stderr)
	}
	if *update && failed {
		s.replaceSection("out.oneshot", formatExpectations(written))
	}
}

// oneShotAnswers decodes the objects that a one-shot run printed.
func oneShotAnswers(out io.Reader) ([]actualAnswer, error) {
	var list []actualAnswer
	for decoder := json.NewDecoder(out); ; {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		var object struct {
			Result *string         `json:"result"`
			Error  json.RawMessage `json:"error"`
			Code   string          `json:"code"`
			Images []struct {
				MIME string `json:"mimeType"`
			} `json:"images"`
		}
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("%w: %s", err, raw)
		}
		got := actualAnswer{kind: "ok", text: string(raw), whole: raw, meta: decodeJSON(raw)}
		for _, image := range object.Images {
			got.images = append(got.images, image.MIME)
		}
		switch {
		case object.Result != nil:
			got.text = *object.Result
		case object.Error != nil:
			got.kind, got.detail, got.text = "error", object.Code, ""
			var inner struct{ Message, Code string }
			if json.Unmarshal(object.Error, &got.text) != nil && json.Unmarshal(object.Error, &inner) == nil {
				got.text, got.detail = inner.Message, inner.Code
			}
		}
		list = append(list, got)
	}
}
