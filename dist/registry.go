package main

import "encoding/json"

// registrySchema is the version of the registry's schema that server.json follows.
const registrySchema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

// The types below are the parts of the registry's server.json that the release uses.
type registryServer struct {
	Schema      string            `json:"$schema"`
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Version     string            `json:"version"`
	Website     string            `json:"websiteUrl"`
	Repository  map[string]string `json:"repository"`
	Packages    []registryPackage `json:"packages"`
}

type registryPackage struct {
	Type       string             `json:"registryType"`
	Identifier string             `json:"identifier"`
	Version    string             `json:"version,omitempty"`
	SHA256     string             `json:"fileSha256,omitempty"`
	Hint       string             `json:"runtimeHint,omitempty"`
	Runtime    []registryArgument `json:"runtimeArguments,omitempty"`
	Arguments  []registryArgument `json:"packageArguments,omitempty"`
	Transport  map[string]string  `json:"transport"`
}

type registryArgument struct {
	Type        string                      `json:"type"`
	Name        string                      `json:"name,omitempty"`
	Value       string                      `json:"value,omitempty"`
	Hint        string                      `json:"valueHint,omitempty"`
	Description string                      `json:"description,omitempty"`
	Format      string                      `json:"format,omitempty"`
	Required    bool                        `json:"isRequired,omitempty"`
	Repeated    bool                        `json:"isRepeated,omitempty"`
	Variables   map[string]registryVariable `json:"variables,omitempty"`
}

type registryVariable struct {
	Description string `json:"description"`
	Format      string `json:"format"`
	Required    bool   `json:"isRequired"`
}

// registryEntry writes server.json, which describes the release to the MCP registry.
func (r *Release) registryEntry() error {
	text, err := json.MarshalIndent(r.server(), "", "  ")
	if err != nil {
		return err
	}
	return r.writeBytes("server.json", append(text, '\n'))
}

// server returns the registry's entry: the npm package, the image, and a bundle for
// each system.
func (r *Release) server() registryServer {
	stdio := map[string]string{"type": "stdio"}
	root := registryArgument{
		Type: "positional", Hint: "directory", Format: "filepath", Required: true, Repeated: true,
		Description: "A directory that the tools may use",
	}
	mount := registryArgument{
		Type: "named", Name: "-v", Value: "{directory}:/workspace", Required: true,
		Description: "The directory that the tools may use",
		Variables:   map[string]registryVariable{"directory": {"A directory of this machine", "filepath", true}},
	}
	fixed := func(value string) registryArgument { return registryArgument{Type: "positional", Value: value} }
	s := registryServer{
		Schema: registrySchema, Name: registryName, Title: "Toolroom", Description: summary, Version: r.Number(), Website: homepage,
		Repository: map[string]string{"url": homepage, "source": "github"},
		Packages: []registryPackage{
			{
				Type: "npm", Identifier: "toolroom", Version: r.Number(), Hint: "npx", Transport: stdio,
				Arguments: []registryArgument{fixed("host"), fixed("stdio"), root},
			},
			{Type: "oci", Identifier: imageName + ":" + r.Number(), Hint: "docker", Transport: stdio, Runtime: []registryArgument{mount}},
		},
	}
	for _, target := range bundleTargets {
		name := r.bundleFile("mcp-host", target)
		if sum := r.hashes[name]; sum != "" {
			s.Packages = append(s.Packages, registryPackage{Type: "mcpb", Identifier: r.URL(name), SHA256: sum, Transport: stdio})
		}
	}
	return s
}
