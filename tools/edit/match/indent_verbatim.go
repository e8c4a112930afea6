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

// verbatim says which lines of a new text are written unchanged, since they
// have the file's indentation already.
type verbatim int

const (
	verbatimNone verbatim = iota // none: every line is shifted
	verbatimAll                  // every line is written as given
	verbatimRest                 // every line except the first, which has none
)

// decideVerbatim decides which lines of a new text are written unchanged at a
// place. pairs has the indentation of the old lines in the old text and in the
// file. firstHasIndent means that the old and the new text begin with the
// indentation of their first lines.
//
// Three clues each point to the old text's indentation, to the file's, or to
// neither: the first line, the old lines that the new text repeats, and the
// smallest indentation. The majority decides, otherwise the first clue that
// points anywhere. The unit of indentation decides if it is certain, and if no
// clue points anywhere.
func decideVerbatim(old, newLines []string, pairs []indentPair, firstHasIndent bool) verbatim {
	differ := slices.ContainsFunc(pairs, func(d indentPair) bool { return d.model != d.file })
	if !firstHasIndent { // the first line follows other text
		newLines = newLines[1:]
	}
	begin := firstNonBlank(newLines)
	if !differ || begin < 0 {
		return verbatimNone
	}
	if firstHasIndent && isOnlyFirstUnindented(old, newLines, pairs, begin) {
		return verbatimRest
	}
	clues := []clue{
		indentClue(newLines[begin][:indentSize(newLines[begin])], pairs[0]),
		repeatedClue(old, newLines, pairs),
		indentClue(shortestIndent(indents(newLines)), shortestIndents(pairs)),
	}
	decided, sure := unitClue(indents(newLines), pairs)
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

// clue is positive (likeFile) if new text seems to have the file's indentation,
// negative (likeModel) if it seems to have the old text's, and 0 if it is not
// known.
type clue int

// likeFile and likeModel are the values of a clue that points to the file's
// indentation and to the old text's.
const likeFile, likeModel clue = 1, -1

// indentClue tells which indentation a line of the new text has: likeFile for that of
// d.file, likeModel for that of the old text (d.model), 0 for another one or if both are
// equal.
func indentClue(indent string, d indentPair) clue {
	switch {
	case d.model == d.file:
		return 0
	case indent == d.file:
		return likeFile
	case indent == d.model:
		return likeModel
	}
	return 0
}

// isOnlyFirstUnindented reports whether the new text's first line is the old
// first line without indentation, while its other lines have the file's
// indentation. A model often omits only the indentation of the first line.
// begin is the index of the first new line that is not blank.
func isOnlyFirstUnindented(old, newLines []string, pairs []indentPair, begin int) bool {
	head := pairs[0]
	if len(pairs) < 2 || head.model != "" || head.file == "" || indentSize(newLines[begin]) > 0 ||
		strings.TrimSpace(newLines[begin]) != strings.TrimSpace(old[firstNonBlank(old)]) {
		return false
	}
	rest := indents(newLines[begin+1:])
	if len(rest) == 0 {
		return false
	}
	// The smallest may belong to a line at the depth of the first, such as
	// an else.
	beside := shortestIndent(rest) == head.file && indentClue(rest[0], pairs[1]) == likeFile
	return (beside || indentClue(shortestIndent(rest), shortestIndents(pairs[1:])) == likeFile) &&
		repeatedClue(old, newLines[begin+1:], pairs[1:]) != likeModel
}

// repeatedClue counts the old lines that the new text repeats with the old
// text's indentation and with the file's, among the lines where these differ,
// and returns the clue of the larger number. If they are equal, the last line
// decides.
func repeatedClue(old, newLines []string, pairs []indentPair) clue {
	type indented struct{ core, indent string }
	inNew, inModel, inFile := map[indented]int{}, map[indented]int{}, map[indented]int{}
	for _, line := range newLines {
		inNew[indented{strings.TrimSpace(line), line[:indentSize(line)]}]++
	}
	for _, d := range pairs {
		if core := strings.TrimSpace(old[d.oldLine]); d.model != d.file {
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
		return likeFile
	case file < model:
		return likeModel
	case file == 0:
		return 0
	}
	last, end := pairs[len(pairs)-1], len(newLines)-1
	for isBlank(newLines[end]) {
		end--
	}
	if strings.TrimSpace(newLines[end]) != strings.TrimSpace(old[last.oldLine]) {
		return 0
	}
	return indentClue(newLines[end][:indentSize(newLines[end])], last)
}

// unitClue compares the unit of the new indentations with those of the old text
// and of the file, if both begin at the same column. sure is set if the new
// indentations are multiples of only one of the two units. It changes
// newIndents.
func unitClue(newIndents []string, pairs []indentPair) (c clue, sure bool) {
	var model, file []string
	base := shortestIndents(pairs)
	for _, d := range pairs {
		model, file = append(model, d.model[len(base.model):]), append(file, d.file[len(base.file):])
	}
	if base.model != base.file {
		return 0, false
	}
	for i, indent := range newIndents {
		newIndents[i] = strings.TrimPrefix(indent, base.file)
	}
	is, was, want := guessUnit(newIndents), guessUnit(model), guessUnit(file)
	blanks := func(indent string) bool { return indent != "" && indent[0] != '\t' }
	switch {
	case was == want || was < 0 || want < 0 || is < 0:
		return 0, false
	case is > 0 && was > 0 && want > 0 && is%was != 0 && is%want == 0:
		return likeFile, true
	case is > 0 && was > 0 && want > 0 && is%was == 0 && is%want != 0:
		return likeModel, true
	case is == want && (want > 0 || !slices.ContainsFunc(newIndents, blanks)):
		return likeFile, false
	}
	return 0, false
}

// shortestIndent returns the shortest of the indentations, of which there must
// be one.
func shortestIndent(all []string) string {
	return slices.MinFunc(all, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// shortestIndents returns the shortest indentation of the old text and the
// shortest of the file, which may belong to different lines. There must be a pair.
func shortestIndents(pairs []indentPair) indentPair {
	var model, file []string
	for _, d := range pairs {
		model, file = append(model, d.model), append(file, d.file)
	}
	return indentPair{model: shortestIndent(model), file: shortestIndent(file)}
}

// setVerbatim decides, after chooseShift, which new lines are written unchanged
// at the place. If there are any, it pairs old and new lines by their text
// without indentation, and clears the shift.
func (b *changeBuilder) setVerbatim(old, newLines []string) {
	b.verbatim = verbatimNone
	if b.pattern.step == Indentation && b.shift != (indentShift{}) {
		b.verbatim = decideVerbatim(old, newLines, b.indentPairs, !b.startsMidLine || b.leadIsPaired)
	}
	if b.verbatim == verbatimNone {
		if b.pairedByContent { // of the previous place
			b.pairs, b.pairedByContent = pairLines(b.pattern.old, b.pattern.new, b.stop), false
		}
		return
	}
	b.anyNotShifted = true
	b.pairs, b.pairedByContent = pairLines(trimLines(b.pattern.old), trimLines(b.pattern.new), b.stop), true
	if b.verbatim == verbatimAll {
		b.firstIndent = ""
	} else {
		b.firstIndent = b.indentPairs[0].file
	}
	b.shift = indentShift{}
}

// writeLineVerbatim writes new line j, given as line, with the indentation in line. If
// the old line has the same text in the file, it keeps the file's text with its trailing
// blanks, and sets with.equal.
func (b *changeBuilder) writeLineVerbatim(j int, line string, with *linePair) {
	lead := string(b.file.Text[b.file.LineStart(b.where.start):b.where.start])
	switch {
	case j == 0 && b.startsMidLine:
		line = strings.TrimPrefix(line, lead)
	case b.firstIndent != "" && line != "" && j == firstNonBlank(b.pattern.new):
		line = b.firstIndent + line
	}
	with.equal = false
	if with.oldLine < 0 {
		b.insertText(line)
		return
	}
	part := b.parts[with.oldLine]
	if bytes.Equal(trimTrailingBlanks(b.file.Text[part.start:part.blanksEnd]), []byte(line)) {
		with.equal = true
		b.keepFileText(part.start, part.blanksEnd)
		return
	}
	head, tail := commonEnds(string(b.file.Text[part.start:part.textEnd]), line)
	b.keepFileText(part.start, part.start+head)
	b.insertText(line[head : len(line)-tail])
	b.keepFileText(part.textEnd-tail, part.textEnd)
}
