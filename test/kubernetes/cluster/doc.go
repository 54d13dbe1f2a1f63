// Package cluster has the API server, scheduler and controllers of Kubernetes take the manifests, on
// nodes without kubelets.
package cluster
