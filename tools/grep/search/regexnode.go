package search

// regexNode is a regexNode of a parsed pattern.
type regexNode struct {
	op       op
	set      charset      // opSet
	look     look         // opLook
	subs     []*regexNode // opConcat, opAlternate; a single one for opRepeat
	min, max int          // opRepeat; max < 0 means unlimited
	lazy     bool         // opRepeat
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

func (n *regexNode) walk(visit func(*regexNode)) {
	visit(n)
	for _, sub := range n.subs {
		sub.walk(visit)
	}
}

func concat(subs []*regexNode) *regexNode {
	switch len(subs) {
	case 0:
		return &regexNode{op: opEmpty}
	case 1:
		return subs[0]
	}
	return &regexNode{op: opConcat, subs: subs}
}
