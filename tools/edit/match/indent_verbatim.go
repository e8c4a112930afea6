package match

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// A model that sends old_string with other indentation than the file's often
// sends new_string with the file's, copied from another view. Shifting both
// would spoil new_string, so it is written unchanged if its indentation shows
// that it is the file's:
//
//	file "\t\tfoo()"   old "foo()"   new "bar()"       writes "\t\tbar()": shifted
//	file "\t\tfoo()"   old "foo()"   new "\t\tbar()"   writes "\t\tbar()": as given

// verbatim says which lines of a new text are written unchanged, because they
// have the file's indentation.
type verbatim int

const (
	verbatimNone verbatim = iota // none: every line is shifted
	verbatimAll                  // every line is written as given
	verbatimRest                 // every line except the first, which has none
)

// verbatimLines decides which lines of a new text are written unchanged at one
// place, from the lines of the old text, the indentation that the file gives
// them, and the new text. Three clues each point to the old text's indentation,
// to the file's, or to neither: the first line, the old lines that the new text
// repeats, and the smallest indentation. The majority decides, otherwise the
// first clue that points anywhere. The unit of indentation decides if it is
// certain, and if no clue points anywhere. whole means that the first line
// begins with its indentation.
func verbatimLines(old, newLines []string, dents []dent, whole bool) verbatim {
	differ := slices.ContainsFunc(dents, func(d dent) bool { return d.model != d.file })
	if !whole { // the first line follows other text
		newLines = newLines[1:]
	}
	begin := firstLine(newLines)
	if !differ || begin < 0 {
		return verbatimNone
	}
	if whole && verbatimAfterFirst(old, newLines, dents, begin) {
		return verbatimRest
	}
	clues := []clue{
		clueOf(newLines[begin][:indentSize(newLines[begin])], dents[0]),
		repeatedClue(old, newLines, dents),
		clueOf(shortest(indents(newLines)), shortestOf(dents)),
	}
	decided, sure := unitClue(indents(newLines), dents)
	first := slices.IndexFunc(clues, func(c clue) bool { return c != 0 })
	switch sum := clues[0] + clues[1] + clues[2]; {
	case sure || first < 0:
	case sum != 0:
		decided = sum
	default:
		decided = clues[first]
	}
	if decided > 0 {
		return verbatimAll
	}
	return verbatimNone
}

// clue is positive for the file's indentation, negative for the old text's, and
// 0 for neither.
type clue int

const asFile, asModel clue = 1, -1

// clueOf returns the clue of an indentation, given the line's old and file
// indentation.
func clueOf(indent string, d dent) clue {
	switch {
	case d.model == d.file:
		return 0
	case indent == d.file:
		return asFile
	case indent == d.model:
		return asModel
	}
	return 0
}

// verbatimAfterFirst reports whether the first line equals the old first line
// without indentation, and the others have the file's indentation: a model
// often omits just that of the first line.
func verbatimAfterFirst(old, newLines []string, dents []dent, begin int) bool {
	head := dents[0]
	if len(dents) < 2 || head.model != "" || head.file == "" || indentSize(newLines[begin]) > 0 ||
		strings.TrimSpace(newLines[begin]) != strings.TrimSpace(old[firstLine(old)]) {
		return false
	}
	rest := indents(newLines[begin+1:])
	if len(rest) == 0 {
		return false
	}
	// The smallest may belong to a line at the depth of the first, such as
	// an else.
	beside := shortest(rest) == head.file && clueOf(rest[0], dents[1]) == asFile
	return (beside || clueOf(shortest(rest), shortestOf(dents[1:])) == asFile) &&
		repeatedClue(old, newLines[begin+1:], dents[1:]) != asModel
}

// repeatedClue compares how many old lines the new text repeats with the old
// indentation and with the file's, among lines where these differ. If the
// counts are equal, the last line decides.
func repeatedClue(old, newLines []string, dents []dent) clue {
	type indented struct{ core, indent string }
	inNew, inModel, inFile := map[indented]int{}, map[indented]int{}, map[indented]int{}
	for _, line := range newLines {
		inNew[indented{strings.TrimSpace(line), line[:indentSize(line)]}]++
	}
	for _, d := range dents {
		if core := strings.TrimSpace(old[d.line]); d.model != d.file {
			inModel[indented{core, d.model}]++
			inFile[indented{core, d.file}]++
		}
	}
	common := func(some map[indented]int) (n int) {
		for line, count := range some {
			n += min(count, inNew[line])
		}
		return n
	}
	switch model, file := common(inModel), common(inFile); {
	case file > model:
		return asFile
	case file < model:
		return asModel
	case file == 0:
		return 0
	}
	last, end := dents[len(dents)-1], len(newLines)-1
	for isBlank(newLines[end]) {
		end--
	}
	if strings.TrimSpace(newLines[end]) != strings.TrimSpace(old[last.line]) {
		return 0
	}
	return clueOf(newLines[end][:indentSize(newLines[end])], last)
}

// unitClue compares the unit of the new indentations with those of the old
// text and of the file, if both begin at the same column. sure is set if the
// new indentations are not multiples of the other unit.
func unitClue(newLines []string, dents []dent) (c clue, sure bool) {
	var model, file []string
	base := shortestOf(dents)
	for _, d := range dents {
		model, file = append(model, d.model[len(base.model):]), append(file, d.file[len(base.file):])
	}
	if base.model != base.file {
		return 0, false
	}
	for i, indent := range newLines {
		newLines[i] = strings.TrimPrefix(indent, base.file)
	}
	is, was, want := step(newLines), step(model), step(file)
	blanks := func(indent string) bool { return indent != "" && indent[0] != '\t' }
	switch {
	case was == want || was < 0 || want < 0 || is < 0:
		return 0, false
	case is > 0 && was > 0 && want > 0 && is%was != 0 && is%want == 0:
		return asFile, true
	case is > 0 && was > 0 && want > 0 && is%was == 0 && is%want != 0:
		return asModel, true
	case is == want && (want > 0 || !slices.ContainsFunc(newLines, blanks)):
		return asFile, false
	}
	return 0, false
}

// shortest returns the shortest indentation.
func shortest(all []string) string {
	return slices.MinFunc(all, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// shortestOf returns the smallest indentations of the old text and of the file.
func shortestOf(dents []dent) dent {
	var model, file []string
	for _, d := range dents {
		model, file = append(model, d.model), append(file, d.file)
	}
	return dent{model: shortest(model), file: shortest(file)}
}

// chooseVerbatim decides, at a place whose shift is known, which new lines are
// written unchanged. If any are, it pairs the lines by their text.
func (b *builder) chooseVerbatim(old, newLines []string) {
	b.verbatim = verbatimNone
	if b.p.step == Indentation && b.shift != (shift{}) {
		b.verbatim = verbatimLines(old, newLines, b.dents, !b.within || b.headed)
	}
	if b.verbatim == verbatimNone {
		if b.asGiven { // of the previous place
			b.partners, b.asGiven = partnersOf(b.p.old, b.p.new, b.stop), false
		}
		return
	}
	b.everGiven = true
	b.partners, b.asGiven = partnersOf(cores(b.p.old), cores(b.p.new), b.stop), true
	if b.verbatim == verbatimAll {
		b.firstShift = ""
	} else {
		b.firstShift = b.dents[0].file
	}
	b.shift = shift{}
}

// contentVerbatim writes a new line unchanged. An equal line of the file is
// kept, with its trailing blanks.
func (b *builder) contentVerbatim(j int, line string, with *partner) {
	lead := string(b.f.Text[b.f.LineStart(b.where.start):b.where.start])
	switch {
	case j == 0 && b.within:
		line = strings.TrimPrefix(line, lead)
	case b.firstShift != "" && line != "" && j == firstLine(b.p.new):
		line = b.firstShift + line
	}
	with.equal = false
	if with.line < 0 {
		b.put(line)
		return
	}
	part := b.part[with.line]
	if bytes.Equal(trimRight(b.f.Text[part.start:part.blanks]), []byte(line)) {
		with.equal = true
		b.keep(part.start, part.blanks)
		return
	}
	head, tail := commonEnds(string(b.f.Text[part.start:part.text]), line)
	b.keep(part.start, part.start+head)
	b.put(line[head : len(line)-tail])
	b.keep(part.text-tail, part.text)
}
