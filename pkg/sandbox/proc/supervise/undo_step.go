package supervise

// The undo record of a command is a directory, made with the first change that
// the command makes in a writable root:
//
//	log     UndoSteps: an UndoHead, then a step before each change, then an
//	        UndoStamp for each path that was changed, and an UndoEnd. The
//	        supervisor holds an exclusive flock on it until the command has ended.
//	data    contents of files, one after the other
//	lN      hard links to files that the command removed or replaced
//	unheld  copies of the steps that undo cannot revert, see UndoUnheld
//
// To undo a command, its steps are reverted in reverse order. UndoEntry
// replaces the entry, whatever it is by then. So one UndoEntry covers all
// later changes of the entry and of the files that the command makes below it.

// UndoKind says what an UndoStep records.
type UndoKind int

// The kinds.
const (
	UndoHead    UndoKind = iota + 1 // Path: the command, Roots, Time: when it began
	UndoEntry                       // the previous state of Path is in Before
	UndoContent                     // the content and metadata of the file Path were those of Before
	UndoMeta                        // mode, owner and times of Path were those of Before
	UndoMove                        // Path was renamed to To
	UndoSwap                        // Path and To were exchanged
	UndoStopped                     // no further steps are recorded; Path: the reason
	UndoStamp                       // Before is the state of Path after the command; Held: made by the command
	UndoEnd                         // Time: when the command had ended; Before.Held: the stamps have attributes
)

// UndoStep is one entry of a command's undo record: a change, or a mark such as its
// end. Paths are absolute, with links resolved as at the time of that step.
type UndoStep struct {
	Kind   UndoKind
	Path   string
	To     string
	Time   int64 // Unix nanoseconds
	Roots  []string
	Before UndoState
}

// UndoState describes a file or directory. Mode 0 means that the path did not exist.
type UndoState struct {
	Mode     int64 // st_mode
	Dev, Ino int64
	UID, GID int64
	Size     int64
	Accessed int64 // Unix nanoseconds
	Modified int64 // Unix nanoseconds
	Changed  int64 // Unix nanoseconds
	Number   int64 // st_rdev
	Target   string
	Link     string // the name of a hard link to the file, in the record's directory
	Held     bool   // the content is in data from Offset on
	Offset   int64
	Hash     string // CRC-64 of the content, in an UndoStamp; "": unknown

	// Attributes are the extended attributes that undo restores. They are read only if
	// the file may have to be made again or written, and for an UndoStamp.
	Attributes []UndoAttribute
}

// UndoAttribute is an extended attribute, such as an access list.
type UndoAttribute struct{ Name, Value string }

// Bounds of one undo record.
const (
	UndoFileBytes    = 16 << 20  // of one copied file
	UndoBytes        = 256 << 20 // of all kept files together
	maxUndoHashBytes = 64 << 20  // of the files whose content is hashed at the end, together
	maxUndoSteps     = 200_000
)

// UndoUnheld is the name of the file, in the directory of a record, with copies of
// the steps whose content is not held and of an UndoStopped. Without such a
// step, the file does not exist.
const UndoUnheld = "unheld"

// MaxUndoFiles is the maximum of Spec.UndoFiles.
const MaxUndoFiles = 8

// fields implements Message.
func (r *UndoStep) fields(f *fields) {
	f.int((*int)(&r.Kind))
	f.string(&r.Path)
	f.string(&r.To)
	f.number(&r.Time)
	f.strings(&r.Roots)
	b := &r.Before
	for _, n := range []*int64{&b.Mode, &b.Dev, &b.Ino, &b.UID, &b.GID, &b.Size, &b.Accessed, &b.Modified, &b.Changed, &b.Number, &b.Offset} {
		f.number(n)
	}
	f.string(&b.Target)
	f.string(&b.Link)
	f.string(&b.Hash)
	f.flag(&b.Held)
	if f.reading && len(f.text) == 0 { // a record of an earlier version
		return
	}
	each(f, &b.Attributes, func(a *UndoAttribute) {
		f.string(&a.Name)
		f.string(&a.Value)
	})
}
