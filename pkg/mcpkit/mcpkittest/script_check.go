package mcpkittest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
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
