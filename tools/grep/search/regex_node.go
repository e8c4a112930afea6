package search

// regexNode is a node of a parsed pattern.
type regexNode struct {
	op       nodeOp
	set      charset      // opSet: the characters
	look     look         // opLook: the condition
	subs     []*regexNode // opConcat and opAlternate: the parts; opRepeat: a single part
	min, max int          // min and max bound the repetitions of opRepeat. max < 0 means unlimited.
	lazy     bool         // opRepeat: prefer fewer repetitions
}

// nodeOp is the kind of a node.
type nodeOp uint8

// The kinds of nodes.
const (
	opEmpty nodeOp = iota
	opSet
	opLook
	opConcat
	opAlternate
	opRepeat
)

// walk calls visit for n and then for all nodes below it.
func (n *regexNode) walk(visit func(*regexNode)) {
	visit(n)
	for _, sub := range n.subs {
		sub.walk(visit)
	}
}

// newConcat returns a node that matches subs one after the other.
func newConcat(subs []*regexNode) *regexNode {
	switch len(subs) {
	case 0:
		return &regexNode{op: opEmpty}
	case 1:
		return subs[0]
	}
	return &regexNode{op: opConcat, subs: subs}
}
