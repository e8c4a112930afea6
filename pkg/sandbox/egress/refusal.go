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
	asked, why, opens string
}

func (r *refusal) Error() string { return printable(r.asked) + " " + r.why }

// text is the answer's body.
func (r *refusal) text() string {
	if r.opens != "" {
		return fmt.Sprintf("%s: start the server with --net allow=%s (in addition to the current list) or --net on to open it", r.Error(), r.opens)
	}
	return r.Error() + ": no --net allow=… permits this request"
}

// Refused returns the refused hosts, each once, in the order of their first refusal.
// more counts the refusals that are not among them.
func (p *Proxy) Refused() (hosts []Refusal, more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused), p.more
}

func (p *Proxy) refuse(r *refusal) {
	one := Refusal{Host: printable(r.asked), Why: r.why, Opens: r.opens}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case slices.Contains(p.refused, one):
	case len(p.refused) < maxRefusals:
		p.refused = append(p.refused, one)
	default:
		p.more++
	}
}

// printable returns text from a client in a form fit for a sentence.
func printable(text string) string {
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
