// Package render makes objects of manifests, as kustomize and Helm do.
package render
