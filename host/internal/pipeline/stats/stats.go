// Package stats is the stage that counts calls, errors, durations and bytes by tool.
// It counts as the caller sees it, with refused calls and waiting.
//
// Durations are kept in a histogram whose classes are a twelfth wide, so that a
// quantile is right within 6 % and a tool needs 2 KB, however often it is called.
package stats

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxTools bounds the tools with their own counters; calls of further tools are
// counted for Other. Clients choose the names of tools that are not listed, so these get
// counters only among the first maxUnlisted tools.
const (
	maxTools    = 10_000
	maxUnlisted = 1_000
)

// Other is the name for tools beyond maxTools.
const Other = "(other)"

// An Observation is an ended call.
type Observation struct {
	Caller     call.Caller
	Tool       string // served name
	Server     string
	Duration   time.Duration
	Bytes      int64        // size of the result
	Code       toolerr.Code // code of the error; "": none
	Failed     bool         // the result has isError
	ResultCode toolerr.Code // known code that the result names; "": none
}

// A Row holds the statistics of one tool.
type Row struct {
	Tool   string        `json:"tool"`
	Server string        `json:"server"`
	Calls  int64         `json:"calls"`
	Errors int64         `json:"errors"` // errors, and results with isError
	P50    time.Duration `json:"p50"`    // nanoseconds
	P99    time.Duration `json:"p99"`
	Bytes  int64         `json:"bytes"`
}

// A Recorder counts calls. It is safe for concurrent use; the zero value is ready to
// use.
type Recorder struct {
	// Observe, unless nil, is called after every call, by the goroutine of
	// the call. Set it before first use.
	Observe func(Observation)

	mu    sync.RWMutex
	tools map[string]*series
}

// Stage returns a handler that makes a call with next, counts it, and passes it to Observe.
func (r *Recorder) Stage(next call.Handler) call.Handler {
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		ctx, took := call.MeasureTime(ctx)
		res, err := next(ctx, req)
		o := Observation{Caller: req.Caller, Tool: req.Tool.Name, Server: req.Tool.Server, Duration: took()}
		if err != nil {
			o.Code = toolerr.CodeOf(err)
		} else {
			o.Bytes, o.Failed = int64(len(res.Raw)), res.IsError()
			if o.Failed {
				o.ResultCode = res.Code()
			}
		}
		counted := o
		if req.Tool.Unlisted != nil && !r.hasRoomFor(o.Tool) {
			counted.Tool, counted.Server = Other, ""
		}
		r.Add(counted)
		if r.Observe != nil {
			r.Observe(o)
		}
		return res, err
	}
}

// hasRoomFor reports whether a tool that is not listed has counters or can get them.
func (r *Recorder) hasRoomFor(tool string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tools[tool] != nil || len(r.tools) < maxUnlisted
}

// Add counts a finished call.
func (r *Recorder) Add(o Observation) {
	s := r.series(o.Tool, o.Server)
	s.calls.Add(1)
	s.bytes.Add(o.Bytes)
	s.sum.Add(int64(o.Duration))
	if o.Failed || o.Code != "" {
		s.errors.Add(1)
		s.countFailure(cmp.Or(o.Code, o.ResultCode, ToolError))
	}
	s.classes[classOf(o.Duration)].Add(1)
}

// series returns the counters of a tool, which it creates if necessary. Above maxTools,
// further tools share those of Other.
func (r *Recorder) series(tool, server string) *series {
	r.mu.RLock()
	s := r.tools[tool]
	r.mu.RUnlock()
	if s != nil {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tools) >= maxTools && r.tools[tool] == nil {
		tool, server = Other, ""
	}
	if s = r.tools[tool]; s == nil {
		if r.tools == nil {
			r.tools = map[string]*series{}
		}
		s = &series{server: server}
		r.tools[tool] = s
	}
	return s
}

// Rows returns the counters, sorted by name.
func (r *Recorder) Rows() []Row {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rows := make([]Row, 0, len(r.tools))
	for tool, s := range r.tools {
		rows = append(rows, Row{
			Tool: tool, Server: s.server, Calls: s.calls.Load(), Errors: s.errors.Load(), Bytes: s.bytes.Load(),
			P50: s.quantile(0.50), P99: s.quantile(0.99),
		})
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Tool, b.Tool) })
	return rows
}

// series holds the counters of one tool.
type series struct {
	server               string
	calls, errors, bytes atomic.Int64
	sum                  atomic.Int64 // of the durations, nanoseconds
	classes              [classCount]atomic.Uint32

	mu    sync.Mutex // locked only for failures
	codes map[toolerr.Code]int64
}

// The classes of durations: one below 1 µs, then eight for each doubling up to about
// 19 hours.
const (
	classesPerDoubling = 8
	classCount         = 1 + classesPerDoubling*36
)

// classOf returns the class of a duration; eight classes double the duration.
func classOf(d time.Duration) int {
	us := uint64(max(0, d)) * classesPerDoubling / uint64(time.Microsecond) // in eighths of a microsecond
	if us < classesPerDoubling {
		return 0
	}
	octave := bits.Len64(us) - 4 // 0: from 1 to 2 µs
	return min(1+octave*classesPerDoubling+int(us>>octave)-classesPerDoubling, classCount-1)
}

// classMiddle returns a duration in the middle of a class.
func classMiddle(class int) time.Duration {
	if class == 0 {
		return 500 * time.Nanosecond
	}
	octave, step := (class-1)/classesPerDoubling, (class-1)%classesPerDoubling
	return time.Duration(float64(uint64(1)<<octave) * (float64(classesPerDoubling+step) + 0.5) / classesPerDoubling * float64(time.Microsecond))
}

// quantile returns the duration that the given share of the calls did not exceed.
func (s *series) quantile(share float64) time.Duration {
	var all, seen uint64
	for i := range s.classes {
		all += uint64(s.classes[i].Load())
	}
	for i := range s.classes {
		seen += uint64(s.classes[i].Load())
		if seen > 0 && float64(seen) >= share*float64(all) {
			return classMiddle(i)
		}
	}
	return 0
}
