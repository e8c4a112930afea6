package match_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// looked is a context that counts its checks and is cancelled from a given one
// on.
type looked struct {
	context.Context
	times, cancelAt int // 0: never
}

func (l *looked) Err() error {
	if l.times++; l.cancelAt > 0 && l.times >= l.cancelAt {
		return context.Canceled
	}
	return nil
}

// passes returns calls that process all of a large file, each by another
// method.
func passes(size int) map[string]func(context.Context) error {
	text := func(line string) []byte { return bytes.Repeat([]byte(line), size/len(line)+1) }
	words := text("a line of words that are like those wanted\n")
	planned := func(ctx context.Context) (*splice.File, *match.Plan, error) {
		f, err := splice.Open(ctx, words)
		if err != nil {
			return nil, nil, err
		}
		plan, err := match.Find(ctx, f, []match.Edit{{Old: "words", New: "x", All: true}}, match.Options{})
		return f, plan, err
	}
	find := func(file []byte, e match.Edit) func(context.Context) error {
		return func(ctx context.Context) error {
			f, err := splice.Open(ctx, file)
			if err == nil {
				var plan *match.Plan
				if plan, err = match.Find(ctx, f, []match.Edit{e}, match.Options{}); err == nil {
					_, err = f.Apply(ctx, plan.Changes)
				}
			}
			return err
		}
	}
	two := "a line of words that are unlike\nthose wanted"
	return map[string]func(context.Context) error{
		"exact":       find(text("one line\n"), match.Edit{Old: "missing", New: "x"}),
		"half":        find(text("aaaaaaaaaaaaaaab"), match.Edit{Old: strings.Repeat("a", 60), New: "x"}),
		"hash":        find(text("a"), match.Edit{Old: strings.Repeat("a", 5000) + "b", New: "x"}),
		"lines":       find(words, match.Edit{Old: two, New: "x"}),
		"punctuation": find(text("“words” – of a line…\n"), match.Edit{Old: "\"words\" - of\na line", New: "x"}),
		"long line":   find(text("“words” – of a line… "), match.Edit{Old: "\"words\"  - of", New: "x"}),
		"indentation": find(text("\t  one\n    two\n"), match.Edit{Old: "one\n  two\nthree", New: "x"}),
		"everywhere":  find(text("one,"), match.Edit{Old: ",", New: ";", All: true}),
		"decoded":     find(append([]byte("\xff\xfe"), text("o\x00n\x00e\x00 \x00l\x00i\x00n\x00e\x00\n\x00")...), match.Edit{Old: "missing", New: "x"}),
		"encoded":     find(text("caf\xe9 et th\xe9, "), match.Edit{Old: ",", New: ";", All: true}),
		"several": func(ctx context.Context) error {
			f, err := splice.Open(ctx, words)
			if err == nil {
				_, err = match.Find(ctx, f, []match.Edit{{Old: "first", New: "x"}, {Old: "second", New: "y"}, {Old: "third", New: "z"}}, match.Options{})
			}
			return err
		},
		"fresh": func(ctx context.Context) error {
			f, plan, err := planned(ctx)
			if err != nil {
				return err
			}
			seen := &state.Seen{Index: textfile.Index{Etag: textfile.EtagOf([]byte("other"))}}
			return match.CheckStale(ctx, f, plan.Places, match.Version{CurrentEtag: textfile.EtagOf(words), Seen: seen}, match.Options{})
		},
		"diff": func(ctx context.Context) error {
			f, plan, err := planned(ctx)
			if err != nil {
				return err
			}
			r, err := f.Apply(ctx, plan.Changes)
			if err != nil {
				return err
			}
			r.Diff(textdiff.Options{MaxLines: 60, Stopped: func() bool { return ctx.Err() != nil }})
			return ctx.Err()
		},
	}
}

// TestCancel: every pass over a file checks its context regularly and ends soon
// after cancellation.
func TestCancel(t *testing.T) {
	const size, every = 1 << 20, 256 << 10
	for name, pass := range passes(size) {
		t.Run(name, func(t *testing.T) {
			all := &looked{Context: t.Context()}
			require.NotErrorIs(t, pass(all), context.Canceled)
			require.GreaterOrEqual(t, all.times, size/every, "a look at every %d bytes", every)
			for at := 1; at <= all.times; at += max(1, all.times/3) {
				ctx := &looked{Context: t.Context(), cancelAt: at}
				require.ErrorIs(t, pass(ctx), context.Canceled, "cancelled at look %d of %d", at, all.times)
				require.LessOrEqual(t, ctx.times, at+2, "work goes on after look %d of %d", at, all.times)
			}
		})
	}
}
