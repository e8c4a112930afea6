package dialect

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
)

// agentFields are the members of an agent of agents:.
func agentFields(k *agent.Kind) []field {
	return []field{
		textField("description", nil, "The purpose of this kind; a model or user chooses the kind from it.", &k.Description),
		textField("instructions", []string{"system", "prompt"}, "Instructions for the agent, before its task.", &k.Instructions),
		textField("model", nil, "Model of the agent, as in models.default; default: the default model.", &k.Model),
		{"tools", []string{"allow", "allow_tools"}, "Patterns of served names; the agent may use only matching tools; default: all.", listSchema("string"), func(r *reader, n *node) {
			k.Tools = append([]string{}, r.texts(n)...) // an empty list is none
		}},
		numberField("max_turns", []string{"max_rounds"}, "Maximum number of model turns (default 25).", &k.Bounds.Turns),
		numberField("max_tokens", nil, "Maximum tokens of all its turns, input and output; default: no limit.", &k.Bounds.Tokens),
		{"max_cost", nil, "Maximum cost, in the unit of the models' prices; default: no limit.", map[string]any{"type": "number", "minimum": 0}, func(r *reader, n *node) { k.Bounds.Cost = r.price(n) }},
		durationField("timeout", "Maximum duration of a run (default 10m).", &k.Bounds.Time),
	}
}

// agentsSchema returns the schema of the setting agents.
func agentsSchema() map[string]any {
	return map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": "^[a-zA-Z0-9_-]{1,64}$"}, "additionalProperties": objectSchema(agentFields(&agent.Kind{}), "instructions")}
}

// readAgents reads the setting agents: kinds of agents by name.
func readAgents(r *reader, n *node, s *Settings) {
	r.eachMember(n, func(name string, value *node) {
		k := agent.Kind{Name: name}
		before := len(r.doc.Problems)
		r.readMembers(value, agentFields(&k))
		if err := k.Validate(); err != nil && len(r.doc.Problems) == before {
			r.problem("%s", strings.TrimPrefix(err.Error(), "agent "+name+": "))
			return
		}
		s.Agents = append(s.Agents, k)
	})
}
