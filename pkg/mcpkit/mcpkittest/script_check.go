package mcpkittest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// actualOf converts a response to the form with which expectations are
// compared.
func actualOf(a Answer) actualAnswer {
	if a.Error != nil {
		whole, err := json.Marshal(a.Error)
		if err != nil {
			whole = nil
		}
		return actualAnswer{kind: "rpc", detail: strconv.Itoa(a.Error.Code), text: a.Error.Message, whole: whole}
	}
	got := actualAnswer{kind: "ok", whole: a.Result}
	result, err := ParseResult(a.Result)
	if err != nil || !bytes.Contains(a.Result, []byte(`"content"`)) { // not a tool's
		got.text = string(a.Result)
		return got
	}
	got.text, got.images, got.meta = result.Text, result.Images, any(result.Meta)
	if result.IsError {
		got.kind, got.detail = "error", result.Code
	}
	return got
}

// checkWire compares all answers, the notifications that section out names, and the
// exit status with that section. With -update it rewrites the section instead of
// failing the test, except for a missing answer or another exit status.
func (s *script) checkWire(t *testing.T, c *Client, expected []*expectation, exit int) {
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
			want = b.detail
		case "notify":
			s.checkNotification(t, c, b)
		default:
			id := idToWire(b.id)
			if len(left[id]) == 0 {
				t.Errorf("no answer to %s", b.id)
				continue
			}
			got := actualOf(left[id][0])
			left[id] = left[id][1:]
			if fault := b.mismatch(got, s.expandVars, s.restoreVars); fault != "" {
				fail("%s: %s", b.firstLine(), fault)
				b.setExpected(got, s.restoreVars)
			}
		}
	}
	if got := strconv.Itoa(exit); got != want {
		t.Errorf("exit status %s, want %s; standard error:\n%s", got, want, c.Stderr())
	}
	for _, b := range unlistedAnswers(left, s.restoreVars) {
		fail("an answer that section out does not list:\n%s", b)
		expected = append(expected, b)
	}
	if *update && failed {
		s.replaceSection("out", formatExpectations(expected))
	}
}

// unlistedAnswers returns expectations for the answers that section out does
// not list.
func unlistedAnswers(left map[string][]Answer, restoreVars *strings.Replacer) []*expectation {
	var blocks []*expectation
	for id, answers := range left {
		for _, a := range answers {
			b := &expectation{id: idFromWire(id)}
			b.setExpected(actualOf(a), restoreVars)
			blocks = append(blocks, b)
		}
	}
	slices.SortFunc(blocks, func(a, b *expectation) int {
		x, errX := strconv.Atoi(a.id)
		y, errY := strconv.Atoi(b.id)
		if errX == nil && errY == nil {
			return x - y
		}
		return strings.Compare(a.id, b.id)
	})
	return blocks
}

// setExpected makes b expect the actual answer, for -update. Other conditions
// are left to the script's author.
func (b *expectation) setExpected(got actualAnswer, restoreVars *strings.Replacer) {
	b.kind, b.detail = got.kind, got.detail
	if b.text != nil || len(b.conditions) == 0 {
		b.text = strings.Split(strings.TrimSuffix(restoreVars.Replace(got.text), "\n"), "\n")
	}
}

// formatExpectations returns the text of section out.
func formatExpectations(blocks []*expectation) string {
	var out strings.Builder
	for _, b := range blocks {
		out.WriteString(b.String())
	}
	return out.String()
}

// checkNotification checks that a notification meets an expectation.
func (s *script) checkNotification(t *testing.T, c *Client, b *expectation) {
	t.Helper()
	var faults []string
	for _, n := range c.Notifications(b.detail) {
		got := actualAnswer{kind: "notify", detail: b.detail, text: string(n.Params), whole: n.Params}
		fault := b.mismatch(got, s.expandVars, s.restoreVars)
		if fault == "" {
			return
		}
		faults = append(faults, fault)
	}
	t.Errorf("no such notification %s among %d:\n%s", b.detail, len(faults), strings.Join(faults, "\n"))
}
