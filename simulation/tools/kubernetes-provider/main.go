// Serves Pulumi's Kubernetes provider. Upstream's main package embeds files that its repository does not hold, so it
// cannot be built from the module; this one embeds the two they are made from, which build.py puts beside it.
package main

import (
	"bytes"
	_ "embed"
	"fmt"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var terraformMapping []byte

func main() {
	stamp := fmt.Appendf(nil, "{\"version\":%q,", version.Version)
	provider.Serve("kubernetes", version.Version, bytes.Replace(schema, []byte("{"), stamp, 1), terraformMapping)
}
