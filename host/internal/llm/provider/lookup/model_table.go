package lookup

import (
	"cmp"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
)

// Info returns information about a provider's model: that of the configuration,
// completed by what is known about models with that name.
func (p Provider) Info(m Model) provider.Info {
	info := infoByPrefix(m.Name)
	info.Name, info.Provider, info.Vendor = m.Name, p.Name, p.Kind.Vendor()
	if m.Window > 0 {
		info.Window = m.Window
	}
	if m.MaxOutput > 0 {
		info.MaxOutput = m.MaxOutput
	}
	if m.Price != (provider.Price{}) {
		info.Price = m.Price
	}
	if m.Images != nil {
		info.Images = *m.Images
	}
	info.Family = cmp.Or(m.Family, info.Family)
	return info
}

// infoByPrefix returns what is known about all models whose names share a prefix with
// name, from the vendors' documentation of 2025; zero for an unknown name. It has no
// prices, because they change.
func infoByPrefix(name string) provider.Info {
	for _, k := range []struct {
		prefix string
		info   provider.Info
	}{
		{"gpt-5-chat", provider.Info{Window: 128_000, MaxOutput: 16_384, Images: true, Family: "o200k"}},
		{"gpt-5", provider.Info{Window: 400_000, MaxOutput: 128_000, Images: true, Family: "o200k"}},
		{"gpt-4.1", provider.Info{Window: 1_047_576, MaxOutput: 32_768, Images: true, Family: "o200k"}},
		{"gpt-4o-2024-05-13", provider.Info{Window: 128_000, MaxOutput: 4_096, Images: true, Family: "o200k"}},
		{"gpt-4o", provider.Info{Window: 128_000, MaxOutput: 16_384, Images: true, Family: "o200k"}},
		{"o3-mini", provider.Info{Window: 200_000, MaxOutput: 100_000, Family: "o200k"}},
		{"o3", provider.Info{Window: 200_000, MaxOutput: 100_000, Images: true, Family: "o200k"}},
		{"o4-mini", provider.Info{Window: 200_000, MaxOutput: 100_000, Images: true, Family: "o200k"}},
		{"claude-opus-4", provider.Info{Window: 200_000, MaxOutput: 32_000, Images: true}},
		{"claude-sonnet-4", provider.Info{Window: 200_000, MaxOutput: 64_000, Images: true}},
		{"claude-haiku-4", provider.Info{Window: 200_000, MaxOutput: 64_000, Images: true}},
		{"claude-3-7", provider.Info{Window: 200_000, MaxOutput: 64_000, Images: true}},
		{"claude-3-5", provider.Info{Window: 200_000, MaxOutput: 8_192, Images: true}},
		{"gemini-3", provider.Info{Window: 1_048_576, MaxOutput: 65_536, Images: true}},
		{"gemini-2.5", provider.Info{Window: 1_048_576, MaxOutput: 65_535, Images: true}},
		{"gemini-2.0", provider.Info{Window: 1_048_576, MaxOutput: 8_192, Images: true}},
	} {
		if strings.HasPrefix(name, k.prefix) {
			return k.info
		}
	}
	return provider.Info{}
}
