package call

import "sync/atomic"

// Owner names those who may see the data of a call: clients with the same user and profile.
type Owner struct {
	User    string // the signed-in user; "": none
	Profile string // "": all tools
}

// Owner returns the owner of the caller's data.
func (c Caller) Owner() Owner { return Owner{c.User, c.Profile} }

// Owners records whether all calls had the same owner. The zero value has no owner. Owners is
// safe for concurrent use.
type Owners struct {
	first   atomic.Pointer[Owner]
	several atomic.Bool
	apart   atomic.Bool
}

// Add records the owner of a call. After a second owner it only records that several owners exist.
func (o *Owners) Add(owner Owner) {
	if o.several.Load() {
		return
	}
	first := o.first.Load()
	if first == nil {
		kept := owner // only this copy is allocated, not the parameter of each call
		if o.first.CompareAndSwap(nil, &kept) {
			return
		}
		first = o.first.Load()
	}
	if *first != owner {
		o.several.Store(true)
	}
}

// AreSeveral reports whether calls had different owners.
func (o *Owners) AreSeveral() bool { return o.several.Load() }

// Separate records that the data of calls must be kept apart from now on.
func (o *Owners) Separate() { o.apart.Store(true) }

// AreSeparate reports whether Separate was called.
func (o *Owners) AreSeparate() bool { return o.apart.Load() }

// First returns the owner of the first call; nil: there was none.
func (o *Owners) First() *Owner { return o.first.Load() }
