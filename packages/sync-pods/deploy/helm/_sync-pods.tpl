{{- /*
Copy this file into the folder templates/ of your chart. It only defines a template, and renders nothing by itself.

The controller of sync-pods.yaml:

  {{- include "resilient-watcher.sync-pods" (dict
    "image" "resilient-watcher:0.1.0"
    "namespace" .Release.Namespace
    "secrets" true) }}

"args" are further flags; with "--namespace=…" among them, set "allNamespaces" to false.
*/ -}}
{{- define "resilient-watcher.sync-pods" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: sync-pods
  namespace: {{ .namespace | quote }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ printf "sync-pods-%s" .namespace | quote }}
rules:
  - apiGroups: ['']
    resources: [configmaps{{ if .secrets }}, secrets{{ end }}]
    verbs: [list, watch]
  - apiGroups: ['']
    resources: [pods]
    verbs: [list, watch, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ printf "sync-pods-%s" .namespace | quote }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ printf "sync-pods-%s" .namespace | quote }}
subjects:
  - kind: ServiceAccount
    name: sync-pods
    namespace: {{ .namespace | quote }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: sync-pods
  namespace: {{ .namespace | quote }}
spec:
  replicas: {{ .replicas | default 2 }}
  selector:
    matchLabels: { app.kubernetes.io/name: sync-pods }
  template:
    metadata:
      labels: { app.kubernetes.io/name: sync-pods }
    spec:
      serviceAccountName: sync-pods
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: { type: RuntimeDefault }
      containers:
        - name: sync-pods
          image: {{ .image | quote }}
          args:
            - sync-pods
            {{- if ne (toString .allNamespaces) "false" }}
            - --all-namespaces
            {{- end }}
            {{- if .secrets }}
            - --secrets
            {{- end }}
            - --listen=:9533
            - --json
            {{- range .args }}
            - {{ . | quote }}
            {{- end }}
          ports:
            - { name: metrics, containerPort: 9533 }
          readinessProbe:
            httpGet: { path: /readyz, port: metrics }
          livenessProbe:
            httpGet: { path: /livez, port: metrics }
          resources:
            requests: { cpu: 10m, memory: 96Mi }
            limits: { memory: 256Mi }
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
{{- end }}
