"""How nodes, lines and labels of the 3D view are painted: programs for the graphics card, in its language.

All sizes on the screen are in the page's pixels, and edges are smoothed by what one pixel of the device covers, so that
the picture is the same on screens of any density.
"""

# A node is one triangle that faces the eye; the disc in it is painted below. How it stands out comes with its colour.
NODE_VERTEX = """
attribute vec4 paint;
attribute float diameter;
uniform vec2 view;
uniform float least;
uniform float reach;
varying vec2 at;
varying vec4 look;
varying float radius;
varying float haze;
void main() {
  vec4 middle = modelViewMatrix * vec4(position, 1.0);
  float scale = projectionMatrix[1][1] * view.y * 0.5 / -middle.z;
  float lowest = paint.a > 0.66 && paint.a < 0.8 ? 6.0 : least;
  radius = diameter > 0.0 ? max(lowest, diameter * 0.5 * scale) : 0.0;
  look = paint;
  haze = smoothstep(-reach, reach, -middle.z - distance(cameraPosition, vec3(0.0)));
  int corner = gl_VertexID % 3;
  vec2 way = corner == 0 ? vec2(0.0, 2.0) : corner == 1 ? vec2(-1.7321, -1.0) : vec2(1.7321, -1.0);
  at = way * (radius > 0.0 ? radius + (paint.a > 0.8 ? 6.5 : min(1.3, 0.3 * radius) + 0.7) : 0.0);
  gl_Position = projectionMatrix * middle;
  gl_Position.xy += at * 2.0 / view * gl_Position.w;
  if (paint.a < 0.5) gl_Position.z = mix(gl_Position.z, gl_Position.w, 0.5);
}"""

NODE_FRAGMENT = """
uniform vec3 paper;
uniform vec3 ink;
varying vec2 at;
varying vec4 look;
varying float radius;
varying float haze;
float inside(float border, float far, float pixel) { return 1.0 - smoothstep(border - pixel, border + pixel, far); }
float glyph(vec2 place) {
  vec2 away = abs(place);
  float bar = step(away.x, 0.56) * step(away.y, 0.13);
  float pole = step(away.y, 0.56) * step(away.x, 0.13);
  float wave = step(away.x, 0.6) * step(abs(place.y - 0.16 * sin(5.2 * place.x)), 0.14);
  return look.a < 0.7 ? max(bar, pole) : look.a < 0.74 ? wave : bar;
}
void main() {
  float far = length(at);
  float pixel = max(0.6 * fwidth(far), 0.001);
  bool chosen = look.a > 0.9;
  bool found = look.a > 0.8;
  float rim = chosen ? 5.0 : found ? 3.6 : min(1.3, 0.3 * radius);
  float seen = inside(radius + rim, far, pixel);
  if (seen < 0.02) discard;
  vec3 body = look.rgb;
  if (look.a > 0.5) {
    float bulge = sqrt(max(0.0, 1.0 - far * far / radius / radius));
    float light = dot(normalize(vec3(-0.45, 0.65, 0.75)), vec3(at / radius, bulge));
    body = mix(body * 0.82, mix(body, vec3(1.0), 0.16), smoothstep(-0.3, 1.0, light));
    if (look.a > 0.66 && !found) body = mix(body, vec3(1.0), glyph(at / radius));
    else body = mix(body, paper, found ? 0.0 : 0.38 * haze);
  }
  vec3 color = paper;
  if (found) color = mix(color, ink, inside(radius + rim - 1.2, far, pixel));
  if (found) color = mix(color, paper, inside(radius + 1.8, far, pixel));
  color = mix(color, body, inside(radius, far, pixel));
  gl_FragColor = vec4(color, seen);
}"""

LINE_VERTEX = """
attribute vec4 paint;
uniform float reach;
varying vec4 look;
void main() {
  vec4 here = modelViewMatrix * vec4(position, 1.0);
  float haze = smoothstep(-reach, reach, -here.z - distance(cameraPosition, vec3(0.0)));
  look = vec4(paint.rgb, paint.a * (1.0 - 0.6 * haze));
  gl_Position = projectionMatrix * here;
}"""

LINE_FRAGMENT = """
varying vec4 look;
void main() {
  if (look.a <= 0.0) discard;
  gl_FragColor = look;
}"""

# A label keeps its size on the screen, and sits on whole pixels, beside its node. Its texture is twice as dense, and a
# square, which leaves room for accents; only the 28 lines in the middle count as its height.
LABEL_VERTEX = """
uniform sampler2D map;
uniform vec2 view;
uniform float least;
uniform vec3 anchor;
uniform float lift;
uniform vec2 side;
uniform float shown;
varying vec2 texel;
varying vec2 quad;
varying vec2 half_size;
void main() {
  vec2 size = vec2(textureSize(map, 0).x, 28.0);
  vec4 middle = viewMatrix * vec4(anchor, 1.0);
  vec4 clip = projectionMatrix * middle;
  float radius = lift > 0.0 ? max(least, lift * projectionMatrix[1][1] * view.y * 0.5 / -middle.z) : 0.0;
  vec2 place = clip.xy / clip.w * view * 0.5 + side * (radius + 0.25 * size + 6.0);
  place = floor(place) + fract(size * 0.25);
  quad = position.xy * (size * 0.5 + 10.0);
  half_size = size * 0.25;
  texel = quad * 2.0 + vec2(textureSize(map, 0)) * 0.5;
  bool hidden = shown < 0.5 || middle.z > -0.001;
  gl_Position = hidden ? vec4(2.0, 2.0, 2.0, 1.0) : vec4((place + quad) * 2.0 / view, -1.0, 1.0);
}"""

LABEL_FRAGMENT = """
uniform sampler2D map;
uniform vec3 paper;
uniform vec3 ink;
uniform float shown;
varying vec2 texel;
varying vec2 quad;
varying vec2 half_size;
float covered(vec2 place) {
  vec2 size = vec2(textureSize(map, 0));
  vec2 inside = step(vec2(0.0), place) * step(place, size);
  return inside.x * inside.y * texture2D(map, place / size).a;
}
void main() {
  float halo = 0.0;
  for (int turn = 0; turn < 12; turn++) {
    vec2 way = vec2(cos(float(turn) * 0.5236), sin(float(turn) * 0.5236));
    halo = max(halo, max(covered(texel + way * 2.4), 0.85 * covered(texel + way * 4.6)));
  }
  float letter = covered(texel);
  float seen = max(letter, 0.92 * halo);
  vec3 color = mix(paper, ink, letter);
  if (shown > 1.5) {
    vec2 beyond = abs(quad) - half_size - vec2(1.0, 0.0);
    float far = length(max(beyond, 0.0)) + min(0.0, max(beyond.x, beyond.y));
    float border = 1.0 - smoothstep(0.0, 1.0, abs(far - 3.2));
    seen = max(seen, far < 3.7 ? 0.96 : 0.0);
    color = mix(color, ink, 0.4 * border * (1.0 - letter));
  }
  if (seen < 0.02) discard;
  gl_FragColor = vec4(color, seen);
}"""
