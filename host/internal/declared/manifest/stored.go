package manifest

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
)

// ReadStored reads manifests that are stored without their original file, and returns
// each tool with its manifest as JSON. They cannot refer to other files. The error is
// dialect.Problems if there is any problem, and if the text has no manifest.
func ReadStored(file string, text []byte, opt Options) (tools []Tool, manifests []json.RawMessage, err error) {
	opt.noOtherFiles = true
	trees, problem := dialect.ParseTrees(file, text)
	if problem != nil {
		return nil, nil, dialect.Problems{*problem}
	}
	var problems dialect.Problems
	for len(trees) > 0 {
		tree := trees[0]
		trees = trees[1:]
		if tree.IsList() {
			trees = append(append([]*dialect.Tree{}, tree.Items...), trees...)
			continue
		}
		var s Set
		s.readDocument(file, tree, opt)
		problems = append(problems, s.Problems...)
		if len(s.Tools) > 1 || len(s.Tools) == 1 && tree.Get("kind") == nil {
			problems = append(problems, dialect.Problem{File: file, Line: tree.Line, Text: "want whole manifests: apiVersion, kind: Tool, metadata and spec"})
			continue
		}
		if len(s.Tools) == 1 {
			tools, manifests = append(tools, s.Tools[0]), append(manifests, tree.JSON())
		}
	}
	if err := problems.Err(); err != nil {
		return nil, nil, err
	}
	if len(tools) == 0 {
		return nil, nil, dialect.Problems{{File: file, Text: "no manifest in this file"}}
	}
	return tools, manifests, nil
}
