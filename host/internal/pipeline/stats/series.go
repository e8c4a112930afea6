package stats

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// ToolError stands among the codes for a tool that says itself that it
// failed, and no code that we know, as OpenTelemetry's conventions for MCP
// call it.
const ToolError toolerr.Code = "tool_error"

// A Series is all that is counted of one tool.
type Series struct {
	Tool   string
	Server string
	Calls  int64 // that have ended
	Bytes  int64
	Sum    time.Duration // of all calls
	Codes  map[toolerr.Code]int64

	// Within holds for each of Bounds how many calls took less.
	Within []int64
}

// The bounds of a Series: from 128 µs to 67 s, each twice the one before, so
// that they lie between the classes.
const firstBound, lastBound = 7, 26

// Bounds are the durations that calls are told apart by in a Series.
func Bounds() []time.Duration {
	var bounds []time.Duration
	for k := firstBound; k <= lastBound; k++ {
		bounds = append(bounds, time.Microsecond<<k)
	}
	return bounds
}

// Series returns what was counted, in the order of the names: of the tools
// that were called most, at most so many; the others are added up as Other.
func (r *Recorder) Series(most int) []Series {
	r.mu.RLock()
	all := make([]Series, 0, len(r.tools))
	for tool, s := range r.tools {
		all = append(all, s.series(tool))
	}
	r.mu.RUnlock()
	if len(all) > most {
		slices.SortFunc(all, func(a, b Series) int {
			return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Tool, b.Tool))
		})
		rest := Series{Tool: Other, Codes: map[toolerr.Code]int64{}, Within: make([]int64, lastBound-firstBound+1)}
		kept := all[:0:0]
		for i, s := range all {
			if i < most && s.Tool != Other {
				kept = append(kept, s)
			} else {
				rest.add(s)
			}
		}
		all = append(kept, rest)
	}
	slices.SortFunc(all, func(a, b Series) int { return strings.Compare(a.Tool, b.Tool) })
	return all
}

func (s *Series) add(other Series) {
	s.Calls += other.Calls
	s.Bytes += other.Bytes
	s.Sum += other.Sum
	for code, n := range other.Codes {
		s.Codes[code] += n
	}
	for i, n := range other.Within {
		s.Within[i] += n
	}
}

// failed counts a failure.
func (s *series) failed(code toolerr.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.codes == nil {
		s.codes = map[toolerr.Code]int64{}
	}
	s.codes[code]++
}

func (s *series) series(tool string) Series {
	out := Series{Tool: tool, Server: s.server, Bytes: s.bytes.Load(), Sum: time.Duration(s.sum.Load())}
	for i := range s.classes {
		// Below 2^k µs lie the classes up to the k-th octave's end.
		if k := (i - 1) / steps; i > 0 && (i-1)%steps == 0 && k >= firstBound && k <= lastBound {
			out.Within = append(out.Within, out.Calls)
		}
		out.Calls += int64(s.classes[i].Load())
	}
	s.mu.Lock()
	out.Codes = maps.Clone(s.codes)
	s.mu.Unlock()
	return out
}
