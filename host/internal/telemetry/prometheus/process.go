package prometheus

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// A Process holds the resources that this process uses, in bytes, numbers and seconds.
// Values that the system does not provide are 0.
type Process struct {
	Goroutines int     `json:"goroutines"`
	Heap       uint64  `json:"heapBytes"`   // live and not yet swept
	Mapped     uint64  `json:"mappedBytes"` // obtained by Go's runtime
	Resident   uint64  `json:"residentBytes"`
	Open       int     `json:"openFiles"` // descriptors
	MaxOpen    uint64  `json:"maxOpenFiles"`
	CPU        float64 `json:"cpuSeconds"`
}

// CurrentProcess returns the resources that this process uses now.
func CurrentProcess() Process {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
	}
	metrics.Read(samples)
	p := Process{Goroutines: runtime.NumGoroutine(), Heap: samples[0].Value.Uint64(), Mapped: samples[1].Value.Uint64()}
	p.readSystem()
	return p
}

// Write adds the resources to page under the names that Prometheus's own clients use.
// since is the start of the process. A value that the system does not provide is left
// out.
func (p Process) Write(page *Page, since time.Time) {
	page.WriteSingle("go_goroutines", Gauge, "Number of goroutines that currently exist.", float64(p.Goroutines))
	page.WriteSingle("go_memstats_heap_alloc_bytes", Gauge, "Bytes of heap objects, live and not yet swept.", float64(p.Heap))
	page.WriteSingle("go_memstats_sys_bytes", Gauge, "Bytes that the Go runtime obtained from the system.", float64(p.Mapped))
	page.WriteSingle("process_start_time_seconds", Gauge, "Start time of the host, in seconds since 1970.", float64(since.UnixMilli())/1000)
	for _, f := range []struct {
		name, kind, help string
		value            float64
	}{
		{"process_cpu_seconds_total", Counter, "Processor time, user and system.", p.CPU},
		{"process_resident_memory_bytes", Gauge, "Resident memory.", float64(p.Resident)},
		{"process_open_fds", Gauge, "Open descriptors.", float64(p.Open)},
		{"process_max_fds", Gauge, "Maximum number of open file descriptors.", float64(p.MaxOpen)},
	} {
		if f.value != 0 {
			page.WriteSingle(f.name, f.kind, f.help, f.value)
		}
	}
}
