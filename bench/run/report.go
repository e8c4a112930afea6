//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// table compares subjects by one figure.
type table struct {
	title  string
	unit   string // "ms", "calls/s", "MiB"
	target string // the goal; "": none
	series []series
	grid   string // markdown to print instead of series; empty: none
	notes  []string
}

// report collects the tables as markdown.
type report struct {
	machine string // the machine and its software
	out     strings.Builder
}

func newReport(b *bench) *report {
	r := &report{}
	r.out.WriteString("# Measurements\n\n`make bench` writes this file; do not edit it. Programs of this repository are bold.\n\n" +
		"- Each figure is the median of the runs. The programs of a table run alternately. min–max are the lowest and the highest run.\n" +
		"- × is the median of the ratios to the first line of the table, run by run.\n" +
		"- CPU seconds and peak memory are medians, too. For a program that ends with its call, a peak below that of the benchmark\n  itself (15 to 30 MiB) cannot be measured.\n" +
		"- In the command lines, `dir`, `file`, `copy` and `port` represent paths and a port that the benchmark chooses.\n" +
		"- The figures of one table were measured together, but sections may have been measured at different times.\n")
	r.machine = fmt.Sprintf("Machine: %d CPUs, %s, %s. Runs: %d.", runtime.NumCPU(), kernel(), runtime.Version(), b.runs)
	names := make([]string, 0, len(b.peers.Versions))
	for name := range b.peers.Versions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		command := b.fill(b.peers.Versions[name])
		out, err := exec.Command(command[0], command[1:]...).Output()
		if err != nil {
			out = []byte("unknown")
		}
		version := strings.TrimPrefix(firstLine(string(out)), name+" ")
		r.machine += fmt.Sprintf(" %s %s.", name, strings.TrimPrefix(strings.TrimPrefix(version, "fdfind "), "v"))
	}
	return r
}

// sectionMark precedes the title of a section.
const sectionMark = "\n## "

// keep adds a section of an earlier report, if that has it.
func (r *report) keep(earlier, title string) {
	_, after, found := strings.Cut(earlier, sectionMark+title+"\n")
	if !found {
		return
	}
	body, _, _ := strings.Cut(after, sectionMark)
	r.out.WriteString(sectionMark + title + "\n" + strings.TrimRight(body, "\n") + "\n")
}

func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return runtime.GOOS
	}
	// The text after the numbers is specific to a distributor or machine.
	release := unix.ByteSliceToString(name.Release[:])
	if end := strings.IndexFunc(release, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end > 0 {
		release = release[:end]
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + release
}

func (r *report) String() string { return r.out.String() }

func (r *report) add(title string, tables []table) {
	fmt.Fprintf(&r.out, "%s%s\n\n%s\n", sectionMark, title, r.machine)
	for _, t := range tables {
		fmt.Fprintf(&r.out, "\n%s", t.title)
		if t.target != "" {
			fmt.Fprintf(&r.out, " Target: %s.", t.target)
		}
		if t.grid != "" {
			fmt.Fprintf(&r.out, "\n\n%s\n", t.grid)
			t.printNotes(&r.out)
			continue
		}
		fmt.Fprintf(&r.out, "\n\n| program | median %s | min–max | × | CPU s | peak MiB |\n| --- | ---: | ---: | ---: | ---: | ---: |\n", t.unit)
		base := t.series[0]
		for _, s := range t.series {
			name := s.name
			if s.ours {
				name = "**" + name + "**"
			}
			values := s.values()
			fmt.Fprintf(&r.out, "| %s | %s | %s–%s | %s | %s | %s |\n", name, figure(median(values)),
				figure(slices.Min(values)), figure(slices.Max(values)), t.ratio(s, base), s.cpuSeconds(), s.peak())
		}
		for i, s := range t.series {
			if i == 0 {
				r.out.WriteString("\n")
			}
			if s.command != "" {
				fmt.Fprintf(&r.out, "- %s: `%s`\n", s.name, s.command)
			}
		}
		t.printNotes(&r.out)
	}
}

func (t table) printNotes(out *strings.Builder) {
	for _, note := range t.notes {
		fmt.Fprintf(out, "- %s\n", note)
	}
}

func (s series) values() []float64 {
	values := make([]float64, len(s.samples))
	for i, one := range s.samples {
		values[i] = one.value
	}
	return values
}

// ratio returns the ratio of two subjects, paired by round.
func (t table) ratio(s, base series) string {
	switch {
	case t.unit == "cases": // a number of cases, which is not compared
		return ""
	case s.name == base.name:
		return "1"
	}
	var all []float64
	for i := range min(len(s.samples), len(base.samples)) {
		if base.samples[i].value > 0 {
			all = append(all, s.samples[i].value/base.samples[i].value)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", median(all))
}

func (s series) cpuSeconds() string {
	var all []float64
	for _, one := range s.samples {
		if one.cpu > 0 {
			all = append(all, one.cpu.Seconds())
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", median(all))
}

func (s series) peak() string {
	var all []float64
	for _, one := range s.samples {
		if one.rss > 0 {
			all = append(all, float64(one.rss)/(1<<20))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", median(all))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// figure formats a number with about three significant digits.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// percentile returns the duration below which the given share of durations lies.
func percentile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
