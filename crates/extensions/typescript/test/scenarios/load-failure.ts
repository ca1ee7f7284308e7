export default function (pi) { this is not typescript
