package egress

import (
	"slices"
	"strings"
)

// Refusal describes a request that the proxy refused.
type Refusal struct {
	// Host is the requested host with its port: printable ASCII, bounded.
	Host string
	// Why continues a sentence: "is not on the list of allowed hosts".
	Why string
	// Opens is the entry for --net allow=… that would have allowed the request;
	// "" if no entry can.
	Opens string
}

// maxRefusals bounds the number of different refusals that a proxy records.
const maxRefusals = 20

// refusal is the error for a request that the list does not allow. It has the
// same fields as Refusal.
type refusal struct {
	requested, why, allowEntry string
}

func (r *refusal) Error() string { return toPrintable(r.requested) + " " + r.why }

// answerText returns the body of the response to a refused request: the reason,
// and, from howToAllow, how to allow it.
func (r *refusal) answerText(howToAllow func(entry string) string) string {
	if r.allowEntry != "" {
		return r.Error() + ": " + howToAllow(r.allowEntry)
	}
	return r.Error() + ": no list of allowed hosts permits this request"
}

// Refused returns the refused requests, each once, in the order of their first
// refusal. more is the number of further refusals, beyond the first maxRefusals
// different ones.
func (p *Proxy) Refused() (hosts []Refusal, more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused), p.moreRefused
}

// recordRefusal adds r to the result of Refused, if it is not in it, and calls
// Config.OnRefused for a new one. Above maxRefusals it only counts.
func (p *Proxy) recordRefusal(r *refusal) {
	one := Refusal{Host: toPrintable(r.requested), Why: r.why, Opens: r.allowEntry}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case slices.Contains(p.refused, one):
	case len(p.refused) < maxRefusals:
		p.refused = append(p.refused, one)
		if p.config.OnRefused != nil {
			p.config.OnRefused(one)
		}
	default:
		p.moreRefused++
	}
}

// toPrintable returns text from a client as printable ASCII without blanks,
// shortened to the length of the longest host and port.
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
