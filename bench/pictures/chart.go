package main

import "fmt"

// panel compares programs by one figure of the report.
type panel struct {
	title, unit    string
	section, about string // where the report has the table
	column         string // of the table; empty: the median
	rows           []row
}

// row is one program.
type row struct {
	label string
	name  string // in the report; of a panel with a column, the column
	ours  bool
}

// panels returns the comparisons of the chart, two in a line.
func panels() []panel {
	return []panel{
		{"Search the Go sources for a rare word", "ms", "Searching", "`StatusTeapot`", "", []row{
			{"ripgrep", "ripgrep", false}, {"grep, first call", "grep, first call", true}, {"grep, later call", "grep, later call", true}}},
		{"List the files of the Go sources", "ms", "Listing the Go distribution", "All files of", "", []row{
			{"ripgrep --files", "ripgrep --files", false}, {"fd", "fd", false}, {"mcp-glob", "mcp-glob, one call", true}}},
		{"Text that a model gets for a directory tree", "bytes", "Size of results", "Size of the results", "two levels of directories", []row{
			{"server-filesystem", "server-filesystem", false}, {"ls", "toolroom", true}}},
		{"Start a tool server", "ms", "Start and idle memory", "Time from the start of the process", "", []row{
			{"server-filesystem", "server-filesystem", false}, {"mcp-view", "mcp-view", true}, {"mcp-host", "mcp-host", true}}},
		{"Change one line of a 100 MB file", "ms", "Editing", "One line in the middle", "", []row{
			{"cp", "cp", false}, {"cp and sync", "cp and sync", false}, {"edit", "edit, a call", true}}},
		{"HTTP gateway, 64 calls in flight", "calls/s, more is better", "Calls through the host", "other gateways to a stdio server. 64 calls", "", []row{
			{"mcp-proxy (npm)", "mcp-proxy", false}, {"supergateway", "supergateway", false}, {"mcp-host serve", "mcp-host serve", true}}},
	}
}

// value returns the figure of a row.
func (p panel) value(measured report, r row) (float64, error) {
	if p.column != "" {
		return measured.cell(p.section, p.about, p.column, r.name)
	}
	return measured.median(p.section, p.about, r.name)
}

const (
	panelWidth  = 416.0
	panelHeight = 128.0
	labelWidth  = 128.0
	valueWidth  = 64.0
	rowHeight   = 25.0
	gap         = 24.0
)

// drawChart draws the panels from the figures of a report.
func drawChart(measured report, t theme) ([]byte, error) {
	all := panels()
	width := 3*gap + 2*panelWidth
	lines := float64((len(all) + 1) / 2)
	m := newImage(width, gap+lines*panelHeight+44, sansSerif, t, "Measured times and rates",
		"Bar charts of toolroom and other programs; bench/RESULTS.md has the figures as text")
	for i, p := range all {
		x := gap + float64(i%2)*(panelWidth+gap)
		y := gap + float64(i/2)*panelHeight
		if err := m.panel(p, x, y, measured, t); err != nil {
			return nil, err
		}
	}
	machine, err := measured.machine(all[0].section)
	if err != nil {
		return nil, err
	}
	y := gap + lines*panelHeight
	m.printf(`<text x="%g" y="%g" font-size="11" fill="%s">Blue: toolroom. Medians, shorter bars are better unless noted. Measured by make bench.</text>`,
		gap, y+4, t.muted)
	m.printf(`<text x="%g" y="%g" font-size="11" fill="%s">%s</text>`, gap, y+22, t.muted, escape(machine))
	return m.bytes(), nil
}

// panel draws one comparison with its top left corner at x, y.
func (m *image) panel(p panel, x, y float64, measured report, t theme) error {
	m.printf(`<text x="%g" y="%g" font-size="14" font-weight="600" fill="%s">%s <tspan font-size="12" font-weight="400" fill="%s">%s</tspan></text>`,
		x, y+12, t.text, escape(p.title), t.muted, escape(p.unit))
	values := make([]float64, len(p.rows))
	most := 0.0
	for i, r := range p.rows {
		value, err := p.value(measured, r)
		if err != nil {
			return err
		}
		if value <= 0 {
			return fmt.Errorf("%s: %s is %g", p.section, r.name, value)
		}
		values[i] = value
		most = max(most, value)
	}
	for i, r := range p.rows {
		top := y + 24 + float64(i)*rowHeight
		fill := t.bar
		if r.ours {
			fill = t.accent
		}
		long := values[i] / most * (panelWidth - labelWidth - valueWidth)
		m.printf(`<text x="%g" y="%g" font-size="12" fill="%s">%s</text>`, x, top+13, t.text, escape(r.label))
		m.printf(`<rect x="%g" y="%g" width="%.1f" height="16" rx="2" fill="%s"/>`, x+labelWidth, top+1, long, fill)
		m.printf(`<text x="%.1f" y="%g" font-size="12" fill="%s">%s</text>`, x+labelWidth+long+6, top+13, t.text, figure(values[i]))
	}
	return nil
}
