//go:build oracle

package tokens_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// The embedded vocabulary is that of the package tiktoken. UPDATE=1 packs it
// anew.
func TestVocabularyIsTheReferences(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(oracle.Module(t, "tiktoken"), "encoders", "o200k_base.json"))
	require.NoError(t, err)
	var encoder struct {
		Ranks string `json:"bpe_ranks"`
	}
	require.NoError(t, json.Unmarshal(text, &encoder))
	var lengths, all []byte
	for line := range strings.Lines(encoder.Ranks) {
		fields := strings.Fields(line) // "!", the first rank, tokens
		var first int
		require.NoError(t, json.Unmarshal([]byte(fields[1]), &first))
		require.Equal(t, len(lengths), first, "ranks follow one another")
		for _, field := range fields[2:] {
			token, err := base64.StdEncoding.DecodeString(field)
			require.NoError(t, err)
			lengths, all = append(lengths, byte(len(token))), append(all, token...)
		}
	}
	want := append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(lengths))), lengths...), all...)
	if os.Getenv("UPDATE") != "" {
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, flate.BestCompression)
		require.NoError(t, err)
		_, err = w.Write(want)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile("o200k_base.bin", packed.Bytes(), 0o644))
	}
	packed, err := os.ReadFile("o200k_base.bin")
	require.NoError(t, err)
	got, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
}

// Texts made of what the tokenizer tells apart, and the documents and programs
// here, have as many tokens as tiktoken says.
func TestCountsAreTiktokens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := append(strings.Split("aabcdeXYZ  \t\n\n\r\r0123.,;:/\\'\"!-_{}[]()<>@#éßÄǅʰª中文のカ한اّลक٣½Ⅷ\u00a0\u2003\u0085\ufeffſK😀€\u200b\u0301ि", ""),
		"'s", "'LL", "'re", "'ſ", "   ", "\r\n", "//", "the", " Function", "createIssue", "👨‍👩‍👧", "12345")
	var texts []string
	for range 5000 {
		var b strings.Builder
		for range r.IntN(25) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		texts = append(texts, b.String())
	}
	for _, pattern := range []string{"../../../../*.md", "../../*/*.go", "../../../../tools/*/*.go", "../../tools/*/testdata/tool.json"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			texts = append(texts, string(text))
		}
	}
	input, err := json.Marshal(texts)
	require.NoError(t, err)
	const script = `const e = require(process.argv[1]).get_encoding("o200k_base");
let s = ""; process.stdin.on("data", d => s += d).setEncoding("utf8").on("end", () =>
	console.log(JSON.stringify(JSON.parse(s).map(t => e.encode_ordinary(t).length))));`
	cmd := exec.Command(oracle.Path(t, "node"), "-e", script, oracle.Module(t, "tiktoken"))
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.Output()
	require.NoError(t, err)
	var want []int
	require.NoError(t, json.Unmarshal(out, &want))
	require.Len(t, want, len(texts))
	v := vocabulary(t)
	for i, text := range texts {
		require.Equal(t, want[i], v.Count(text), "%.200q", text)
	}
}
