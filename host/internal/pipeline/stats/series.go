package stats

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// ToolError is the code of results with isError that name no known code. It is the
// name in OpenTelemetry's conventions for MCP.
const ToolError toolerr.Code = "tool_error"

// A Series holds all counters of a tool.
type Series struct {
	Tool   string
	Server string
	Calls  int64 // number of ended calls
	Bytes  int64
	Sum    time.Duration // total duration of all calls
	Codes  map[toolerr.Code]int64

	// Within holds, for each of Bounds, the number of calls that took less.
	Within []int64
}

// Series returns the counters by tool, sorted by name: at most most tools, those with
// the most calls; the others are added up as Other.
func (r *Recorder) Series(most int) []Series {
	r.mu.RLock()
	all := make([]Series, 0, len(r.tools))
	for tool, s := range r.tools {
		all = append(all, s.snapshot(tool))
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

// add adds the counters of other to s.
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

// countFailure counts a failure.
func (s *series) countFailure(code toolerr.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.codes == nil {
		s.codes = map[toolerr.Code]int64{}
	}
	s.codes[code]++
}

// snapshot returns a copy of the counters of the tool with this name.
func (s *series) snapshot(tool string) Series {
	out := Series{Tool: tool, Server: s.server, Bytes: s.bytes.Load(), Sum: time.Duration(s.sum.Load())}
	for i := range s.classes {
		// The classes up to the end of the k-th octave are below 2^k µs.
		if k := (i - 1) / classesPerDoubling; i > 0 && (i-1)%classesPerDoubling == 0 && k >= firstBound && k <= lastBound {
			out.Within = append(out.Within, out.Calls)
		}
		out.Calls += int64(s.classes[i].Load())
	}
	s.mu.Lock()
	out.Codes = maps.Clone(s.codes)
	s.mu.Unlock()
	return out
}
