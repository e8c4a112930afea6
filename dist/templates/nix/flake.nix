{
  description = "{{summary}}";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      version = "{{.Number}}";
      sources = {
        x86_64-linux = { url = "{{url "linux" "amd64"}}"; hash = "{{sri "linux" "amd64"}}"; };
        aarch64-linux = { url = "{{url "linux" "arm64"}}"; hash = "{{sri "linux" "arm64"}}"; };
        x86_64-darwin = { url = "{{url "darwin" "amd64"}}"; hash = "{{sri "darwin" "amd64"}}"; };
        aarch64-darwin = { url = "{{url "darwin" "arm64"}}"; hash = "{{sri "darwin" "arm64"}}"; };
      };
      each = f: builtins.mapAttrs (system: source: f nixpkgs.legacyPackages.${system} source) sources;
    in
    {
      packages = each (pkgs: source: rec {
        toolroom = pkgs.stdenvNoCC.mkDerivation {
          pname = "toolroom";
          inherit version;
          src = pkgs.fetchurl source;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          dontConfigure = true;
          dontBuild = true;
          dontFixup = true;
          installPhase = ''
            install -Dm755 -t $out/bin mcp-*
            install -Dm644 -t $out/share/doc/toolroom LICENSE README.md THIRD_PARTY_LICENSES.txt
            installShellCompletion --cmd mcp-host \
              --bash completions/mcp-host.bash --zsh completions/mcp-host.zsh --fish completions/mcp-host.fish
          '';
          meta = {
            description = "{{summary}}";
            homepage = "{{homepage}}";
            license = pkgs.lib.licenses.mit;
            mainProgram = "mcp-host";
            platforms = builtins.attrNames sources;
          };
        };
        default = toolroom;
      });
    };
}
