package egress

import (
	"fmt"
	"slices"
	"strings"
)

// Refusal describes a refused request.
type Refusal struct {
	// Host is the requested host with its port: printable ASCII, bounded.
	Host string
	// Why continues a sentence: "is not on the list of allowed hosts".
	Why string
	// Opens is the entry for --net allow=… that would have allowed it, or ""
	// where none does.
	Opens string
}

// maxRefusals bounds the number of different refusals that are kept.
const maxRefusals = 20

// refusal is a request that the list does not allow.
type refusal struct {
	asked, why, allowEntry string
}

func (r *refusal) Error() string { return toPrintable(r.asked) + " " + r.why }

// answerText is the answer's body.
func (r *refusal) answerText() string {
	if r.allowEntry != "" {
		return fmt.Sprintf("%s: start the server with --net allow=%s (in addition to the current list) or --net on to open it", r.Error(), r.allowEntry)
	}
	return r.Error() + ": no --net allow=… permits this request"
}

// Refused returns the refused hosts, each once, in the order of their first refusal.
// more counts the refusals that are not among them.
func (p *Proxy) Refused() (hosts []Refusal, more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused), p.moreRefused
}

func (p *Proxy) recordRefusal(r *refusal) {
	one := Refusal{Host: toPrintable(r.asked), Why: r.why, Opens: r.allowEntry}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case slices.Contains(p.refused, one):
	case len(p.refused) < maxRefusals:
		p.refused = append(p.refused, one)
	default:
		p.moreRefused++
	}
}

// toPrintable returns text from a client in a form fit for a sentence.
func toPrintable(text string) string {
	if len(text) > longestName+6 {
		text = text[:longestName+6] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, text)
}
