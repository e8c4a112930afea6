package accesstoken

import (
	"sync"
	"time"
)

// The pause between two reports of an outage doubles from shortestPause to longestPause: texts
// of network errors can differ each time, and an issuer can alternate between two faults.
const (
	shortestPause = 5 * time.Second
	longestPause  = 10 * time.Minute
)

// outageReports decides which failures of the issuer are reported.
type outageReports struct {
	mu       sync.Mutex
	reported string // the last reason; "": the issuer works
	last     time.Time
	pause    time.Duration // after last
}

// isNews reports whether the result of a request to the issuer has to be reported at the time now: the end of
// an outage whose beginning was reported, or another reason than the last one, after the pause.
func (o *outageReports) isNews(err error, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		ended := o.reported != ""
		o.reported = ""
		return ended
	}
	since := now.Sub(o.last)
	if err.Error() == o.reported || since >= 0 && since < o.pause {
		return false
	}
	if since < 0 || since > longestPause+o.pause {
		o.pause = 0
	}
	o.pause = min(max(2*o.pause, shortestPause), longestPause)
	o.reported, o.last = err.Error(), now
	return true
}

// report calls Config.Report for a failure to ask the issuer, or for nil if a token was verified, if it is news.
func (v *Verifier) report(err error) {
	if v.cfg.Report != nil && v.outage.isNews(err, v.cfg.Now()) {
		v.cfg.Report(err)
	}
}
