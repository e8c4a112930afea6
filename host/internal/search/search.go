// Package search ranks documents, out of thousands, by a query: BM25 over several
// fields, in which names weigh more than texts (Robertson, Zaragoza: The Probabilistic
// Relevance Framework, 2009, §3.6).
//
// Compound names are split (createIssue, create_issue, HTTPServer), and words are
// reduced to their stems (see Terms). The query may omit the last letters of a word.
// The result depends only on the documents and the query; equal scores are in the
// order of the documents.
package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A Doc is a document of an index.
type Doc struct {
	Name  string   // weighs most
	Group string   // name of what it belongs to, such as a tool's server
	Text  string   // description
	Parts []string // names and texts of its parts, such as parameters; weigh least
}

// A Hit is a document that matches a query.
type Hit struct {
	Doc   int // index of the document in the slice given to New
	Score float64
}

// The parameters of BM25: saturation of repeated words, penalty for long fields, and
// weights of the fields.
const (
	k1 = 1.2
	b  = 0.6

	nameWeight  = 4
	groupWeight = 1.5
	textWeight  = 1
	partWeight  = 0.7
)

// prefixWeight is the weight of a word if the query contains only its beginning.
const (
	prefixWeight = 0.4 // weight of a word of which the query has only the beginning
	minPrefix    = 3   // letters of the shortest such beginning
	maxPrefixes  = 64  // words that one beginning can match
)

// Bounds of one query. Words beyond them are ignored.
const (
	maxQuery = 16 << 10 // bytes
	maxTerms = 128      // different words
)

// An Index is a search index. It is immutable and safe for concurrent use.
type Index struct {
	names    []string    // in lower case
	terms    []string    // sorted
	postings [][]posting // by term
}

// posting is the weight of a term in a document: its frequencies in the fields,
// weighted and normalized by their lengths.
type posting struct {
	doc    int32
	weight float32
}

// New returns an index of docs.
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
	x.postings = make([][]posting, len(x.terms))
	for i, term := range x.terms {
		x.postings[i] = all[term]
	}
	return x
}

// Find returns at most most documents that contain a word of the query, best first.
// fits selects the documents; nil selects all.
func (x *Index) Find(query string, most int, fits func(doc int) bool) []Hit {
	scores := make([]float64, len(x.names))
	for _, term := range firstTerms(Terms(query[:min(len(query), maxQuery)])) {
		at, exact := slices.BinarySearch(x.terms, term)
		if exact {
			x.addScores(scores, at, 1)
			at++
		}
		if len(term) < minPrefix {
			continue
		}
		for last := min(at+maxPrefixes, len(x.terms)); at < last && strings.HasPrefix(x.terms[at], term); at++ {
			x.addScores(scores, at, prefixWeight*float64(len(term))/float64(len(x.terms[at])))
		}
	}
	named := strings.ToLower(strings.TrimSpace(query))
	var hits []Hit
	for doc, score := range scores {
		if x.names[doc] == named {
			score += 1000 // the query is the document's name
		}
		if score > 0 && (fits == nil || fits(doc)) {
			hits = append(hits, Hit{doc, score})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc)) })
	return hits[:min(len(hits), max(most, 0))]
}

// addScores adds share of the term's score to the scores of the documents that contain
// it.
func (x *Index) addScores(scores []float64, term int, share float64) {
	places := x.postings[term]
	rare := math.Log(1 + (float64(len(x.names))-float64(len(places))+0.5)/(float64(len(places))+0.5))
	for _, p := range places {
		w := float64(p.weight)
		scores[p.doc] += share * rare * w * (k1 + 1) / (w + k1)
	}
}

// firstTerms returns the first maxTerms different terms.
func firstTerms(terms []string) []string {
	var once []string
	for _, term := range terms {
		if !slices.Contains(once, term) && len(once) < maxTerms {
			once = append(once, term)
		}
	}
	return once
}
