package mcpkittest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// outcomeOf converts a response to the form that blocks are compared with.
func outcomeOf(a Answer) outcome {
	if a.Error != nil {
		whole, err := json.Marshal(a.Error)
		if err != nil {
			whole = nil
		}
		return outcome{kind: "rpc", arg: strconv.Itoa(a.Error.Code), text: a.Error.Message, whole: whole}
	}
	got := outcome{kind: "ok", whole: a.Result}
	result, err := ParseResult(a.Result)
	if err != nil || !bytes.Contains(a.Result, []byte(`"content"`)) { // not a tool's
		got.text = string(a.Result)
		return got
	}
	got.text, got.images, got.meta = result.Text, result.Images, any(result.Meta)
	if result.IsError {
		got.kind, got.arg = "error", result.Code
	}
	return got
}

// checkWire compares all answers with section out.
func (s *script) checkWire(t *testing.T, c *Client, expected []*block, exit int) {
	t.Helper()
	left := map[string][]Answer{}
	for _, a := range c.Untaken() {
		left[a.ID] = append(left[a.ID], a)
	}
	want, failed := "0", false
	fail := func(format string, args ...any) {
		failed = true
		if !*update {
			t.Errorf(format, args...)
		}
	}
	for _, b := range expected {
		switch b.kind {
		case "exit":
			want = b.arg
		case "notify":
			s.checkNotification(t, c, b)
		default:
			id := idToWire(b.id)
			if len(left[id]) == 0 {
				t.Errorf("no answer to %s", b.id)
				continue
			}
			got := outcomeOf(left[id][0])
			left[id] = left[id][1:]
			if fault := b.compare(got, s.vars, s.placeholders); fault != "" {
				fail("%s: %s", b.head(), fault)
				b.setExpected(got, s.placeholders)
			}
		}
	}
	if got := strconv.Itoa(exit); got != want {
		t.Errorf("exit status %s, want %s; standard error:\n%s", got, want, c.Stderr())
	}
	for _, b := range unexpected(left, s.placeholders) {
		fail("an answer that section out does not list:\n%s", b)
		expected = append(expected, b)
	}
	if *update && failed {
		s.replaceSection("out", writeBlocks(expected))
	}
}

// unexpected returns blocks for the answers that section out does not list.
func unexpected(left map[string][]Answer, back *strings.Replacer) []*block {
	var blocks []*block
	for id, answers := range left {
		for _, a := range answers {
			b := &block{id: idFromWire(id)}
			b.setExpected(outcomeOf(a), back)
			blocks = append(blocks, b)
		}
	}
	slices.SortFunc(blocks, func(a, b *block) int {
		x, errX := strconv.Atoi(a.id)
		y, errY := strconv.Atoi(b.id)
		if errX == nil && errY == nil {
			return x - y
		}
		return strings.Compare(a.id, b.id)
	})
	return blocks
}

// idFromWire is the inverse of wireID.
func idFromWire(id string) string {
	var name string
	if json.Unmarshal([]byte(id), &name) == nil && name != "" && idToWire(name) == id {
		return name
	}
	return id
}

// setExpected makes the block expect the actual answer, for -update. Other
// checks of the block are left to its author.
func (b *block) setExpected(got outcome, back *strings.Replacer) {
	b.kind, b.arg = got.kind, got.arg
	if b.text != nil || len(b.checks) == 0 {
		b.text = strings.Split(strings.TrimSuffix(back.Replace(got.text), "\n"), "\n")
	}
}

func writeBlocks(blocks []*block) string {
	var out strings.Builder
	for _, b := range blocks {
		out.WriteString(b.String())
	}
	return out.String()
}

func (s *script) checkNotification(t *testing.T, c *Client, b *block) {
	t.Helper()
	var faults []string
	for _, n := range c.Notifications(b.arg) {
		got := outcome{kind: "notify", arg: b.arg, text: string(n.Params), whole: n.Params}
		fault := b.compare(got, s.vars, s.placeholders)
		if fault == "" {
			return
		}
		faults = append(faults, fault)
	}
	t.Errorf("no such notification %s among %d:\n%s", b.arg, len(faults), strings.Join(faults, "\n"))
}

// runOneShot runs the sections in.oneshot and out.oneshot in a second process.
func (s *script) runOneShot(t *testing.T, bin string) {
	t.Helper()
	expected, err := parseBlocks(s.sections["out.oneshot"], false)
	if err != nil {
		t.Fatalf("section out.oneshot: %v", err)
	}
	args := s.words("args")
	if _, own := s.sections["args.oneshot"]; own {
		args = s.words("args.oneshot")
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.root, s.env(), 5*time.Second
	cmd.Stdin = strings.NewReader(s.vars.Replace(s.sections["in.oneshot"]))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(Patience, func() {
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

func (s *script) checkOneShot(t *testing.T, expected []*block, answers []outcome, exit int, stderr string) {
	t.Helper()
	status, fixed, failed := 0, "", false
	var written []*block
	for _, b := range expected {
		if b.kind == "exit" {
			fixed = b.arg
			continue
		}
		written = append(written, b)
	}
	for i, got := range answers {
		if got.kind == "error" {
			status = 1
		}
		if i == len(written) {
			b := &block{}
			b.setExpected(got, s.placeholders)
			written = append(written, b)
			failed = true
			if !*update {
				t.Errorf("an answer that section out.oneshot does not list:\n%s", b)
			}
			continue
		}
		if fault := written[i].compare(got, s.vars, s.placeholders); fault != "" {
			failed = true
			if !*update {
				t.Errorf("answer %d, %s: %s", i+1, written[i].head(), fault)
			}
			written[i].setExpected(got, s.placeholders)
		}
	}
	if len(answers) < len(written) {
		t.Errorf("%d answers, want %d; standard error:\n%s", len(answers), len(written), stderr)
	}
	want := strconv.Itoa(status)
	if fixed != "" {
		want = fixed
		written = append(written, &block{kind: "exit", arg: fixed})
	}
	if got := strconv.Itoa(exit); got != want {
		t.Errorf("exit status %s, want %s; standard error:\n%s", got, want, stderr)
	}
	if *update && failed {
		s.replaceSection("out.oneshot", writeBlocks(written))
	}
}

// oneShotAnswers decodes the objects that a one-shot run printed.
func oneShotAnswers(out io.Reader) ([]outcome, error) {
	var list []outcome
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
		got := outcome{kind: "ok", text: string(raw), whole: raw, meta: decodeJSON(raw)}
		for _, image := range object.Images {
			got.images = append(got.images, image.MIME)
		}
		switch {
		case object.Result != nil:
			got.text = *object.Result
		case object.Error != nil:
			got.kind, got.arg, got.text = "error", object.Code, ""
			var inner struct{ Message, Code string }
			if json.Unmarshal(object.Error, &got.text) != nil && json.Unmarshal(object.Error, &inner) == nil {
				got.text, got.arg = inner.Message, inner.Code
			}
		}
		list = append(list, got)
	}
}
