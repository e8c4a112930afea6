// Package prometheus writes metrics in Prometheus's text format, version 0.0.4. It
// provides the format and the metrics of this process; its users write all others.
//
// The format has about a dozen rules. The client library would add protocol buffers
// (4.6 MB, and two milliseconds to every start) and its own counters, which calls
// would have to update in addition to the host's.
package prometheus

import (
	"io"
	"math"
	"strconv"
	"strings"
)

// ContentType is the media type of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// The types of a family.
const (
	Counter   = "counter"
	Gauge     = "gauge"
	Histogram = "histogram"
)

// A Page holds the text of metrics while it is written. Its zero value is empty.
type Page struct {
	text []byte
	name string // family that was begun last
}

// A Label is a label of a sample. Name is written as it is; Value may be any text.
type Label struct{ Name, Value string }

// BeginFamily begins the samples of a metric; kind is Counter, Gauge or Histogram. Each
// name is begun once.
func (p *Page) BeginFamily(name, kind, help string) {
	p.name = name
	p.text = append(p.text, "# HELP "+name+" "...)
	p.text = append(escape(p.text, help, false), "\n# TYPE "+name+" "+kind+"\n"...)
}

// WriteSample adds one value of the family that was begun last.
func (p *Page) WriteSample(value float64, labels ...Label) { p.sample("", value, labels) }

// WriteSingle adds a family with one sample without labels.
func (p *Page) WriteSingle(name, kind, help string, value float64) {
	p.BeginFamily(name, kind, help)
	p.WriteSample(value)
}

// WriteHistogram adds a histogram to the family that was begun last: within[i] is the
// number of observations of at most bounds[i], count the number of all, and sum their
// sum.
func (p *Page) WriteHistogram(bounds []float64, within []int64, count int64, sum float64, labels ...Label) {
	le := append(append(make([]Label, 0, len(labels)+1), labels...), Label{Name: "le"})
	for i, bound := range bounds {
		le[len(labels)].Value = strconv.FormatFloat(bound, 'g', -1, 64)
		p.sample("_bucket", float64(within[i]), le)
	}
	le[len(labels)].Value = "+Inf"
	p.sample("_bucket", float64(count), le)
	p.sample("_sum", sum, labels)
	p.sample("_count", float64(count), labels)
}

// sample adds a sample of the current metric; suffix is _sum, _count, _bucket or "".
func (p *Page) sample(suffix string, value float64, labels []Label) {
	p.text = append(append(p.text, p.name...), suffix...)
	for i, label := range labels {
		p.text = append(p.text, "{,"[min(i, 1)])
		p.text = append(append(p.text, label.Name...), `="`...)
		p.text = append(escape(p.text, label.Value, true), '"')
	}
	if len(labels) > 0 {
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, ' ')
	switch {
	case math.IsInf(value, 1):
		p.text = append(p.text, "+Inf"...)
	case value == math.Trunc(value) && math.Abs(value) < 1<<53:
		p.text = strconv.AppendInt(p.text, int64(value), 10)
	default:
		p.text = strconv.AppendFloat(p.text, value, 'g', 15, 64) // one less than would show that a tenth is none
	}
	p.text = append(p.text, '\n')
}

// escape appends text, escaped for a help line or, if quoted, for a label's value.
func escape(dst []byte, text string, quoted bool) []byte {
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case r == '\\':
			dst = append(dst, `\\`...)
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '"' && quoted:
			dst = append(dst, `\"`...)
		default:
			dst = append(dst, string(r)...)
		}
	}
	return dst
}

// WriteTo implements io.WriterTo: it writes the text of the page.
func (p *Page) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(p.text)
	return int64(n), err
}
