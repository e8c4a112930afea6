// Package search finds the few documents out of thousands that a query is
// about: BM25 over several fields, with names weighing more than texts
// (Robertson, Zaragoza: The Probabilistic Relevance Framework, 2009, §3.6).
//
// A name is taken apart where its writer put it together (createIssue,
// create_issue, HTTPServer), and words are cut to what their forms have in
// common (see Terms). The last letters of a word may be missing. What is found
// depends on the documents and the query alone, equal scores in the order of
// the documents.
package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A Doc is something that can be found.
type Doc struct {
	Name  string   // what it is called
	Group string   // what it belongs to
	Text  string   // what is said of it
	Parts []string // names and texts of what it is made of
}

// A Hit is a document that was found.
type Hit struct {
	Doc   int // its place among those of the index
	Score float64
}

// The parameters of BM25: how soon more of the same word says nothing new, how
// much long fields are held against a document, and how much each counts.
const (
	k1 = 1.2
	b  = 0.6

	nameWeight  = 4
	groupWeight = 1.5
	textWeight  = 1
	partWeight  = 0.7
)

// prefixWeight is what a word counts of which the query has the beginning, of
// which there may be many.
const (
	prefixWeight = 0.4
	minPrefix    = 3
	maxPrefixes  = 64
)

// The bounds of one query: what is beyond them is not looked for.
const (
	maxQuery = 16 << 10
	maxTerms = 128
)

// An Index is immutable and safe for concurrent use.
type Index struct {
	names  []string // in lower case
	terms  []string // sorted
	places [][]posting
}

// posting is how much of a term a document has: frequencies in its fields,
// weighted and made comparable by their lengths.
type posting struct {
	doc    int32
	weight float32
}

// New makes an index.
func New(docs []Doc) *Index {
	x := &Index{names: make([]string, len(docs))}
	fields := make([][4][]string, len(docs))
	var total [4]float64
	for i, d := range docs {
		x.names[i] = strings.ToLower(d.Name)
		fields[i] = [4][]string{Terms(d.Name), Terms(d.Group), Terms(d.Text), nil}
		for _, part := range d.Parts {
			fields[i][3] = append(fields[i][3], Terms(part)...)
		}
		for f, terms := range fields[i] {
			total[f] += float64(len(terms))
		}
	}
	weights := [4]float64{nameWeight, groupWeight, textWeight, partWeight}
	all := map[string][]posting{}
	for i := range docs {
		found := map[string]float64{}
		for f, terms := range fields[i] {
			long := 1 - b + b*float64(len(terms))*float64(len(docs))/max(total[f], 1)
			for _, term := range terms {
				found[term] += weights[f] / long
			}
		}
		for term, weight := range found {
			all[term] = append(all[term], posting{int32(i), float32(weight)})
		}
	}
	x.terms = make([]string, 0, len(all))
	for term := range all {
		x.terms = append(x.terms, term)
	}
	slices.Sort(x.terms)
	x.places = make([][]posting, len(x.terms))
	for i, term := range x.terms {
		x.places[i] = all[term]
	}
	return x
}

// Find returns the documents that have a word of the query, at most most of
// them, the best first. fits, unless nil, says which are looked at.
func (x *Index) Find(query string, most int, fits func(doc int) bool) []Hit {
	scores := make([]float64, len(x.names))
	for _, term := range unique(Terms(query[:min(len(query), maxQuery)])) {
		at, exact := slices.BinarySearch(x.terms, term)
		if exact {
			x.add(scores, at, 1)
			at++
		}
		if len(term) < minPrefix {
			continue
		}
		for last := min(at+maxPrefixes, len(x.terms)); at < last && strings.HasPrefix(x.terms[at], term); at++ {
			x.add(scores, at, prefixWeight*float64(len(term))/float64(len(x.terms[at])))
		}
	}
	named := strings.ToLower(strings.TrimSpace(query))
	var hits []Hit
	for doc, score := range scores {
		if x.names[doc] == named {
			score += 1000 // who knows the name means that
		}
		if score > 0 && (fits == nil || fits(doc)) {
			hits = append(hits, Hit{doc, score})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc)) })
	return hits[:min(len(hits), max(most, 0))]
}

// add adds what the documents with a term get for it.
func (x *Index) add(scores []float64, term int, share float64) {
	places := x.places[term]
	rare := math.Log(1 + (float64(len(x.names))-float64(len(places))+0.5)/(float64(len(places))+0.5))
	for _, p := range places {
		w := float64(p.weight)
		scores[p.doc] += share * rare * w * (k1 + 1) / (w + k1)
	}
}

func unique(terms []string) []string {
	var once []string
	for _, term := range terms {
		if !slices.Contains(once, term) && len(once) < maxTerms {
			once = append(once, term)
		}
	}
	return once
}
