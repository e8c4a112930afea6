package catalog

import "errors"

// Errors returns why tools or servers are missing, and which definitions have changed.
func (c *Catalog) Errors() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rebuildIfOutdated()
	var errs []error
	for _, s := range c.allServers() {
		for _, kind := range kinds() {
			l := s.lists[kind]
			if l.err != nil {
				errs = append(errs, &ServerError{s.Source.Name(), l.err})
			}
			errs = append(append(errs, l.faults...), l.drift...)
		}
	}
	return append(errs, c.faults...)
}

// A ServerError is the error of a server that could not be listed.
type ServerError struct {
	Server string
	Err    error
}

// Error returns the text with the server's name.
func (e *ServerError) Error() string { return "server " + e.Server + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ServerError) Unwrap() error { return e.Err }

// OnFault sets a function that is called once for each fault of a definition: it says
// which one is left out, or served with a change, and why. It must be set before the first use.
func (c *Catalog) OnFault(f func(error)) { c.onFault = f }

// maxReportedFaults limits the faults that OnFault's function gets: a server can send
// other definitions again and again.
const maxReportedFaults = 100

// errMoreFaults is reported after maxReportedFaults faults.
var errMoreFaults = errors.New("further faults of definitions are not reported; mcp-host tools lists them")

// reportFaults passes the faults that were not reported before to onFault. The caller
// holds c.mu.
func (c *Catalog) reportFaults() {
	if c.onFault == nil || c.closed {
		return
	}
	var found []error
	for _, s := range c.allServers() {
		for _, kind := range kinds() {
			found = append(found, s.lists[kind].faults...)
		}
	}
	var fresh []error
	for _, fault := range append(found, c.faults...) {
		if text := fault.Error(); len(c.reportedFaults) <= maxReportedFaults && !c.reportedFaults[text] {
			if len(c.reportedFaults) == maxReportedFaults {
				fault = errMoreFaults
			}
			c.reportedFaults[text] = true
			fresh = append(fresh, fault)
		}
	}
	if len(fresh) > 0 {
		c.work.Go(func() {
			for _, fault := range fresh {
				c.onFault(fault)
			}
		})
	}
}
