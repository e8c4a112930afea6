package main

import (
	"debug/macho"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A bundleTarget is a set of platforms that one .mcpb bundle serves: bundles name an
// operating system, but no architecture.
type bundleTarget struct {
	name      string
	platforms []Platform // two of them are joined into universal programs
}

var bundleTargets = []bundleTarget{
	{"linux_amd64", []Platform{{"linux", "amd64"}}},
	{"linux_arm64", []Platform{{"linux", "arm64"}}},
	{"darwin_universal", []Platform{{"darwin", "amd64"}, {"darwin", "arm64"}}},
	{"windows_amd64", []Platform{{"windows", "amd64"}}}, // Windows on arm64 runs it, too
}

// bundles returns a task for each target whose platforms are built.
func (r *Release) bundles() []task {
	var tasks []task
	for _, target := range bundleTargets {
		if !slices.ContainsFunc(target.platforms, func(p Platform) bool { return !r.has(p) }) {
			tasks = append(tasks, func() error { return r.bundlesFor(target) })
		}
	}
	return tasks
}

// bundlesFor writes a bundle for each tool, and toolroom.mcpb with all programs.
func (r *Release) bundlesFor(target bundleTarget) error {
	programs, err := r.joinedPrograms(target)
	if err != nil {
		return err
	}
	system := target.platforms[0]
	for _, f := range programs {
		name := strings.TrimSuffix(f.name, ".exe")
		if name == "mcp-bash" && system.OS != "linux" {
			continue // it cannot confine commands there, so that it refuses to run them
		}
		contents := []file{f}
		if name == "mcp-host" || name == "mcp-dispatch_agent" { // these start the others
			contents = programs
		}
		m, err := r.bundleManifest(name, system)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return err
		}
		files := append([]file{{name: "manifest.json", mode: 0o644, data: append(text, '\n')}}, within("server/", contents)...)
		files = append(files, r.documents[0], r.documents[2])
		if err := r.write(r.bundleFile(name, target), func(w io.Writer) error { return writeZip(w, files, r.Time) }); err != nil {
			return err
		}
	}
	return nil
}

func bundleName(program string) string {
	if program == "mcp-host" {
		return "toolroom"
	}
	return "toolroom-" + strings.TrimPrefix(program, "mcp-")
}

func (r *Release) bundleFile(program string, target bundleTarget) string {
	return fmt.Sprintf("%s_%s_%s.mcpb", bundleName(program), r.Number(), target.name)
}

// A manifest is the manifest.json of a bundle, in version 0.3 of its specification.
type manifest struct {
	ManifestVersion string                `json:"manifest_version"`
	Name            string                `json:"name"`
	DisplayName     string                `json:"display_name"`
	Version         string                `json:"version"`
	Description     string                `json:"description"`
	Author          map[string]string     `json:"author"`
	Repository      map[string]string     `json:"repository"`
	Homepage        string                `json:"homepage"`
	Support         string                `json:"support"`
	License         string                `json:"license"`
	Keywords        []string              `json:"keywords"`
	Server          manifestServer        `json:"server"`
	Tools           []manifestTool        `json:"tools"`
	ToolsGenerated  bool                  `json:"tools_generated,omitempty"` // the server can have more
	Compatibility   map[string][]string   `json:"compatibility"`
	UserConfig      map[string]userOption `json:"user_config"`
}

type manifestServer struct {
	Type   string `json:"type"`
	Entry  string `json:"entry_point"`
	Config struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	} `json:"mcp_config"`
}

type manifestTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type userOption struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Multiple    bool   `json:"multiple,omitempty"`
	Sensitive   bool   `json:"sensitive,omitempty"`
	Default     any    `json:"default,omitempty"`
}

// bundleManifest describes the bundle of a program. The person who installs it chooses
// the directories that the tools may use.
func (r *Release) bundleManifest(program string, p Platform) (manifest, error) {
	var tools []manifestTool
	var err error
	suite := program == "mcp-host"
	display, about := "Toolroom", summary
	if suite {
		for _, name := range r.programs {
			if name == program || name == "mcp-dispatch_agent" { // served only if there is a model
				continue
			}
			list, failed := r.servedTools(name)
			tools, err = append(tools, list...), failed
			if err != nil {
				return manifest{}, err
			}
		}
	} else if tools, err = r.servedTools(program); err != nil {
		return manifest{}, err
	} else {
		display, about = "Toolroom "+tools[0].Name, tools[0].Description
	}
	m := manifest{
		ManifestVersion: "0.3", Name: bundleName(program), DisplayName: display, Version: r.Number(), Description: about,
		Author:     map[string]string{"name": organization, "url": homepage},
		Repository: map[string]string{"type": "git", "url": homepage + ".git"},
		Homepage:   homepage, Support: homepage + "/issues", License: "MIT",
		Keywords: []string{"files", "search", "edit", "shell", "coding"}, Tools: tools,
		Compatibility: map[string][]string{"platforms": {nodeSystem[p.OS]}},
		UserConfig: map[string]userOption{"roots": {
			Type: "directory", Title: "Directories", Required: true, Multiple: true,
			Description: "The directories that the tools may use. Nothing outside them is read or written.",
		}},
	}
	m.Server.Type, m.Server.Entry = "binary", "server/"+p.program(program)
	m.Server.Config.Command = "${__dirname}/" + m.Server.Entry
	m.Server.Config.Args = []string{"${user_config.roots}"}
	m.Server.Config.Env = map[string]string{}
	if suite {
		m.ToolsGenerated = true
		m.Server.Config.Args = []string{"stdio", "${user_config.roots}"}
	}
	if program == "mcp-dispatch_agent" {
		m.UserConfig["model"] = userOption{
			Type: "string", Title: "Model", Default: "",
			Description: "The model of agents, such as anthropic/claude-sonnet-4-5. Empty: as configured for mcp-host.",
		}
		m.UserConfig["anthropic_api_key"] = userOption{
			Type: "string", Title: "Anthropic API key", Sensitive: true, Default: "",
			Description: "The key for Anthropic's models, if agents use them.",
		}
		m.Server.Config.Args = []string{"--model=${user_config.model}", "${user_config.roots}"}
		m.Server.Config.Env["ANTHROPIC_API_KEY"] = "${user_config.anthropic_api_key}"
	}
	return m, nil
}

// servedTools returns the tools of a program with the first sentence of each
// description.
func (r *Release) servedTools(program string) ([]manifestTool, error) {
	text, err := os.ReadFile(filepath.Join(r.Repo, "tools", strings.TrimPrefix(program, "mcp-"), "testdata", "tool.json"))
	if err != nil {
		return nil, err
	}
	var list struct{ Tools []manifestTool }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	if len(list.Tools) == 0 {
		return nil, fmt.Errorf("%s serves no tool", program)
	}
	for i, tool := range list.Tools {
		first, _, _ := strings.Cut(tool.Description, "\n")
		if sentence, _, more := strings.Cut(first, ". "); more {
			first = sentence + "."
		}
		list.Tools[i].Description = first
	}
	return list.Tools, nil
}

// joinedPrograms returns the programs of a target, universal ones for two platforms.
func (r *Release) joinedPrograms(target bundleTarget) ([]file, error) {
	files := r.programFiles(target.platforms[0])
	if len(target.platforms) == 1 {
		return files, nil
	}
	for i, f := range files {
		var parts [][]byte
		for _, p := range target.platforms {
			content, err := os.ReadFile(filepath.Join(r.binaries[p], f.name))
			if err != nil {
				return nil, err
			}
			parts = append(parts, content)
		}
		joined, err := universal(parts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		files[i] = file{name: f.name, mode: f.mode, data: joined}
	}
	return files, nil
}

// universal joins programs of macOS for several architectures into a universal one, as
// lipo does. Each part keeps its signature.
func universal(parts [][]byte) ([]byte, error) {
	const align = 14 // 2^14 bytes: the page size of arm64
	header := binary.BigEndian.AppendUint32(nil, macho.MagicFat)
	header = binary.BigEndian.AppendUint32(header, uint32(len(parts)))
	var body []byte
	for _, part := range parts {
		if len(part) < 12 || binary.LittleEndian.Uint32(part) != macho.Magic64 {
			return nil, fmt.Errorf("not a 64-bit program of macOS")
		}
		offset := 1<<align + len(body)
		for _, field := range []uint32{
			binary.LittleEndian.Uint32(part[4:]), binary.LittleEndian.Uint32(part[8:]), // processor and its kind
			uint32(offset), uint32(len(part)), align,
		} {
			header = binary.BigEndian.AppendUint32(header, field)
		}
		body = append(body, part...)
		body = append(body, make([]byte, (1<<align-len(body)%(1<<align))%(1<<align))...)
	}
	return append(append(header, make([]byte, 1<<align-len(header))...), body...), nil
}
