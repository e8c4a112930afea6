package index_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolroom-mcp/toolroom/tools/grep/index"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// corpus has the files of the Go distribution or, if that has no sources,
// generated files of words.
type corpus struct {
	keys  []index.Key
	texts [][]byte // nil for a binary file
	total int64    // bytes of all
}

func newCorpus(tb testing.TB) *corpus {
	tb.Helper()
	c := &corpus{}
	add := func(text []byte) {
		c.total += int64(len(text))
		c.keys = append(c.keys, index.Key{Dev: 1, Ino: uint64(len(c.keys) + 1), Size: int64(len(text))})
		if bytes.IndexByte(text, 0) >= 0 {
			text = nil
		}
		c.texts = append(c.texts, text)
	}
	//lint:ignore SA1019 the place of the sources, if this machine has them
	_ = filepath.WalkDir(runtime.GOROOT(), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil {
			add(text)
		}
		return nil
	})
	if len(c.keys) >= 1000 {
		return c
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var words []string
	for range 50_000 {
		words = append(words, fmt.Sprintf("%x", rng.Uint64()>>rng.IntN(48)))
	}
	for range 10_000 {
		var text strings.Builder
		for range rng.IntN(3000) {
			text.WriteString(words[int(rng.ExpFloat64()*2000)%len(words)])
			text.WriteByte(" \n\t.(="[rng.IntN(6)])
		}
		add([]byte(text.String()))
	}
	return c
}

func (c *corpus) addTo(x *index.Index) {
	now := time.Now()
	for i, k := range c.keys {
		x.Add(k, now, c.texts[i], c.texts[i] == nil)
	}
}

func require1(text string, fold bool) [][]search.Literal {
	return [][]search.Literal{{{Text: []byte(text), Fold: fold}}}
}

func BenchmarkAdd(b *testing.B) {
	c := newCorpus(b)
	var text int64
	for _, t := range c.texts {
		text += int64(len(t))
	}
	b.SetBytes(text)
	b.ReportAllocs()
	var x *index.Index
	for b.Loop() {
		x = index.New(1 << 30)
		c.addTo(x)
	}
	files, size := x.Stats()
	b.ReportMetric(float64(size)/float64(files), "B/file")
	b.ReportMetric(float64(files), "files")
}

// BenchmarkLook measures the calls of one search: one for each file of the
// corpus.
func BenchmarkLook(b *testing.B) {
	c := newCorpus(b)
	x := index.New(1 << 30)
	c.addTo(x)
	for name, required := range map[string][][]search.Literal{
		"rare":         require1("unsafe.SliceData", false),
		"common":       require1("return", true),
		"alternatives": {{{Text: []byte("readdirnames")}, {Text: []byte("lookupenv")}, {Text: []byte("waitgroup")}}},
		"absent":       require1("zqxjkv_wvut", false),
		"two sets":     {{{Text: []byte("func")}}, {{Text: []byte("waitgroup")}}},
	} {
		b.Run(name, func(b *testing.B) {
			var verdicts [4]int
			b.ReportAllocs()
			for b.Loop() {
				verdicts = [4]int{}
				q := index.NewQuery(required)
				for _, k := range c.keys {
					verdicts[x.Lookup(k, q)]++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(c.keys)), "ns/file")
			b.ReportMetric(100*float64(verdicts[index.Maybe])/float64(len(c.keys)), "%maybe")
		})
	}
}
