{{- define "pinion.nats" -}}
{{- if .Values.nats.enabled -}}
nats://{{ .Release.Name }}-nats:4222/pinion?replicas={{ .Values.nats.replicas }}
{{- else -}}
{{ required "nats.address is missing" .Values.nats.address }}
{{- end -}}
{{- end -}}
{{- define "pinion.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end -}}
{{- define "pinion.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}
{{- define "pinion.dns" -}}
- to:
    - namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: kube-system}
      podSelector:
        matchLabels: {k8s-app: kube-dns}
  ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
{{- end -}}
