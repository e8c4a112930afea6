package spill_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/spill"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
)

func TestStage(t *testing.T) {
	stagetest.Run(t, func(*testing.T) (call.Stage, func()) { return spill.New(spill.Config{}), func() {} })
}

func BenchmarkStage(b *testing.B) { stagetest.Bench(b, spill.New(spill.Config{})) }

// outcome is a result as it goes on.
type outcome struct {
	raw     string
	Content []struct {
		Type, Text  string
		Annotations map[string]any
	}
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool
	Odd        any
	Meta       struct {
		Files []string `json:"toolroom/spilled"`
		Other string
	} `json:"_meta"`
}

// run passes a result through the stage; dir is the directory of the files.
func run(t *testing.T, cfg spill.Config, tool *call.Tool, raw string) outcome {
	t.Helper()
	h := spill.New(cfg)(func(context.Context, *call.Request) (*call.Result, error) {
		return &call.Result{Raw: json.RawMessage(raw)}, nil
	})
	res, err := h(t.Context(), &call.Request{Tool: tool})
	require.NoError(t, err)
	o := outcome{raw: string(res.Raw)}
	require.True(t, utf8.Valid(res.Raw))
	require.NoError(t, json.Unmarshal(res.Raw, &o))
	return o
}

func into(dir string) func() (string, error) { return func() (string, error) { return dir, nil } }

func read(t *testing.T, name string) string {
	t.Helper()
	info, err := os.Stat(name)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

// small is a bound for tests that need no megabytes.
const small = 200_000

func tool() *call.Tool { return &call.Tool{Name: "s__t"} }

func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestWhatFitsPassesByteForByte(t *testing.T) {
	none := spill.Config{Dir: func() (string, error) { panic("not needed") }}
	for _, raw := range []string{
		`{"content":[{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}]}`, // a mebibyte of text, and what is around it
		`{"resultType":"input_required","requestState":"` + strings.Repeat("x", 2<<20) + `"}`,
		`{"results":"` + strings.Repeat("x", 2<<20) + `"}`,
	} {
		require.Equal(t, len(raw), len(run(t, none, tool(), raw).raw))
	}
	raw := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 2<<20) + `"}]}`
	require.Equal(t, len(raw), len(run(t, spill.Config{MaxResult: -1}, tool(), raw).raw))
}

// However little may be passed on, some of it is the text's beginning and end, and the
// text is kept once.
func TestASmallBoundKeepsBeginningAndEnd(t *testing.T) {
	for _, c := range []struct{ bound, size int }{{4 << 10, 10_000}, {16 << 10, 100_000}, {64 << 10, 70_000}, {100_000, 101_000}} {
		whole := "begin " + strings.Repeat("x", c.size) + " end"
		dir := t.TempDir()
		o := run(t, spill.Config{MaxResult: c.bound, Dir: into(dir)}, tool(), `{"content":[{"type":"text","text":`+quoted(whole)+`}]}`)
		require.Len(t, o.Content, 1)
		require.True(t, strings.HasPrefix(o.Content[0].Text, "begin xxx"), "%d: %.80s", c.bound, o.Content[0].Text)
		require.True(t, strings.HasSuffix(o.Content[0].Text, "xxx end"))
		require.Less(t, len(o.Content[0].Text), c.bound)
		require.Len(t, o.Meta.Files, 1)
		require.Equal(t, whole, read(t, o.Meta.Files[0]))
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 1)
	}
}

func TestALongTextKeepsItsBeginningAndEnd(t *testing.T) {
	var b strings.Builder
	for n := range 100_000 {
		b.WriteString("line é " + strconv.Itoa(n) + "\n")
	}
	whole := b.String()
	dir := t.TempDir()
	o := run(t, spill.Config{Dir: into(dir)}, tool(),
		`{"content":[{"type":"text","text":"small"},{"annotations":{"priority":1},"type":"text","text":`+quoted(whole)+`}],"odd":1.0,"_meta":{"other":"x"}}`)
	require.Len(t, o.Content, 2)
	require.Equal(t, "small", o.Content[0].Text)
	require.Equal(t, map[string]any{"priority": 1.0}, o.Content[1].Annotations)
	require.Equal(t, 1.0, o.Odd)
	require.Equal(t, "x", o.Meta.Other)
	require.False(t, o.IsError)
	require.Less(t, len(o.raw), 16<<10)

	require.Len(t, o.Meta.Files, 1)
	name := o.Meta.Files[0]
	require.Equal(t, dir, filepath.Dir(name))
	require.Equal(t, whole, read(t, name))
	head, rest, ok := strings.Cut(o.Content[1].Text, "\n\n[… ")
	require.True(t, ok)
	note, tail, ok := strings.Cut(rest, " …]\n\n")
	require.True(t, ok)
	require.True(t, strings.HasPrefix(whole, head))
	require.True(t, strings.HasSuffix(head, "\n"), "whole lines")
	require.True(t, strings.HasSuffix(whole, "\n"+tail))
	require.Greater(t, len(head), 6<<10)
	require.Greater(t, len(tail), 3<<10)
	require.Contains(t, note, "of "+strconv.Itoa(len(whole))+" bytes (100001 lines) omitted; full text in "+name)
}

func TestNoCharacterIsCut(t *testing.T) {
	for _, pad := range []string{"", "x", "xx", "xxx"} {
		o := run(t, spill.Config{MaxResult: small, Dir: into(t.TempDir())}, tool(), `{"content":[{"type":"text","text":"`+pad+strings.Repeat("😀", 80_000)+`"}]}`)
		require.NotContains(t, o.Content[0].Text, "\uFFFD")
		require.Contains(t, o.Content[0].Text, "😀\n\n[… ")
	}
}

func TestWhatIsNoTextIsNamed(t *testing.T) {
	data := bytes.Repeat([]byte{0, 1, 2, 255}, 1<<16)
	encoded := base64.StdEncoding.EncodeToString(data)
	for _, c := range []struct{ part, text, ending, kept string }{
		{`{"type":"image","mimeType":"image/png","data":"` + encoded + `"}`, "[image/png of 262144 bytes was too large; it is in ", ".png", string(data)},
		{`{"type":"audio","mimeType":"audio/x-odd","data":"` + encoded + `"}`, "[audio/x-odd of 262144 bytes", ".bin", string(data)},
		{`{"type":"image","data":"!` + encoded + `"}`, "[data that is not base64 of", ".base64", "!" + encoded},
		{`{"type":"resource","resource":{"uri":"file:///x","mimeType":"application/pdf","blob":"` + encoded + `"}}`, "[application/pdf of 262144 bytes", ".pdf", string(data)},
		{`{"type":"resource","resource":{"uri":"file:///x","text":"` + encoded + `"}}`, "resource file:///x:\nAAEC", ".txt", encoded},
		{`{"type":"new","what":"` + encoded + `"}`, "[a part of type new of ", ".json", `{"type":"new","what":"` + encoded + `"}`},
		{`{"type":"text","text":"x","annotations":{"a":"` + encoded + `"}}`, "[a part of type text of ", ".json", `{"type":"text","text":"x","annotations":{"a":"` + encoded + `"}}`},
		{`"` + encoded + `"`, "[a part of ", ".json", `"` + encoded + `"`},
	} {
		o := run(t, spill.Config{MaxResult: small, Dir: into(t.TempDir())}, tool(), `{"content":[`+c.part+`]}`)
		require.Len(t, o.Content, 1)
		require.Equal(t, "text", o.Content[0].Type)
		require.True(t, strings.HasPrefix(o.Content[0].Text, c.text), "%.200s", o.Content[0].Text)
		require.Len(t, o.Meta.Files, 1)
		require.Equal(t, c.ending, filepath.Ext(o.Meta.Files[0]))
		require.True(t, c.kept == read(t, o.Meta.Files[0]), "%.40s: the file holds what it was", c.part)
	}
}

func TestStructuredContentIsTakenOut(t *testing.T) {
	large := `{"rows":"` + strings.Repeat("x", 300_000) + `"}`
	raw := `{"content":[{"type":"text","text":"2 rows"}],"structuredContent":` + large + `}`
	o := run(t, spill.Config{MaxResult: small, Dir: into(t.TempDir())}, tool(), raw)
	require.Nil(t, o.Structured)
	require.False(t, o.IsError)
	require.Equal(t, "2 rows", o.Content[0].Text)
	require.Contains(t, o.Content[1].Text, "[structuredContent of 300011 bytes was too large; it is in "+o.Meta.Files[0])
	require.Equal(t, large, read(t, o.Meta.Files[0]))

	declared := tool()
	declared.Output = json.RawMessage(`{"type":"object"}`)
	require.True(t, run(t, spill.Config{MaxResult: small, Dir: into(t.TempDir())}, declared, raw).IsError)
	o = run(t, spill.Config{MaxResult: small, Dir: into(t.TempDir())}, declared, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 300_000)+`"}],"structuredContent":{"n":1}}`)
	require.JSONEq(t, `{"n":1}`, string(o.Structured), "what fits stays")
	require.False(t, o.IsError)
}

func TestVeryManyPartsAreKeptAsAWhole(t *testing.T) {
	raw := `{"content":[` + strings.Repeat(`{"type":"text","text":"`+strings.Repeat("x", 1000)+`"},`, 300) + `{"type":"text","text":"last"}],"isError":true}`
	o := run(t, spill.Config{MaxResult: small, Dir: into(t.TempDir())}, tool(), raw)
	require.Len(t, o.Content, 1)
	require.True(t, o.IsError)
	require.Equal(t, raw, read(t, o.Meta.Files[0]))
}

// Users who signed in get no files, since file tools would show them to other users.
func TestResultsOfUsersAreNotStored(t *testing.T) {
	dir := t.TempDir()
	h := spill.New(spill.Config{MaxResult: 4096, Dir: into(dir)})(func(context.Context, *call.Request) (*call.Result, error) {
		return &call.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":` + quoted(strings.Repeat("word ", 9000)) + `}]}`)}, nil
	})
	for _, user := range []string{"", "ann"} {
		res, err := h(t.Context(), &call.Request{Tool: tool(), Caller: call.Caller{User: user}})
		require.NoError(t, err)
		require.Equal(t, user == "", strings.Contains(string(res.Raw), "full text in "+dir), string(res.Raw))
		require.Equal(t, user != "", strings.Contains(string(res.Raw), "was not saved: this host keeps no files with results of users who signed in"), string(res.Raw))
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}

func TestWithoutAFileTheResultSaysSo(t *testing.T) {
	raw := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 300_000) + `"},{"type":"image","data":"` + strings.Repeat("A", 300_000) + `"}]}`
	for _, cfg := range []spill.Config{
		{},
		{Dir: func() (string, error) { return "", errors.New("this host has no state directory") }},
		{Dir: into(filepath.Join(t.TempDir(), "this host has no state directory"))},
	} {
		cfg.MaxResult = small
		o := run(t, cfg, tool(), raw)
		require.Less(t, len(o.raw), 16<<10)
		require.Empty(t, o.Meta.Files)
		require.Contains(t, o.Content[0].Text, "omitted; the rest was not saved: ")
		require.Contains(t, o.Content[0].Text, "this host has no state directory")
		require.Contains(t, o.Content[1].Text, "was not saved: ")
	}
	require.NoError(t, spill.Config{}.Validate())
}
