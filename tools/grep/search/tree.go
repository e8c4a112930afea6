package search

// node is a parsed pattern.
type node struct {
	op       op
	set      charset // opSet
	look     look    // opLook
	subs     []*node // opConcat, opAlternate; one of opRepeat
	min, max int     // opRepeat; max < 0 is without end
	lazy     bool    // opRepeat
}

type op uint8

const (
	opEmpty op = iota
	opSet
	opLook
	opConcat
	opAlternate
	opRepeat
)

// look is a condition on the characters before and behind a place.
type look uint8

const (
	lineStart look = iota
	lineEnd
	textStart
	textEnd
	// Of words there are six, and the same six again for ASCII only.
	wordBoundary
	notWordBoundary
	wordStart
	wordEnd
	wordStartHalf
	wordEndHalf
	asciiLooks = 6 // added to one of words makes it of ASCII
)

func (n *node) walk(visit func(*node)) {
	visit(n)
	for _, sub := range n.subs {
		sub.walk(visit)
	}
}

func concat(subs []*node) *node {
	switch len(subs) {
	case 0:
		return &node{op: opEmpty}
	case 1:
		return subs[0]
	}
	return &node{op: opConcat, subs: subs}
}
